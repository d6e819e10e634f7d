"""A query for an inflected form, and the forms predicted for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.proven_outputs import Output, ProvenOutputs
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.strings.marks import split_tags
from onmt_entmax.strings.task import Query


@dataclass(frozen=True)
class Question:
    """A query for one form: a `Query` with the field names of inflection.

    Attributes:
        language: a name or code that the models know.
        lemma: the word.
        tags: the tags of the form; one string, `"V;PST"`, is divided. For a language whose training
            data has no tags, an empty tuple.
    """

    language: str
    lemma: str
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        tags: str | Iterable[str] = self.tags  # a str from callers that are not type-checked
        if isinstance(tags, str):
            tags = split_tags(tags)
        object.__setattr__(self, "tags", tuple(tags))

    @property
    def query(self) -> Query:
        """The query that a `Transducer` takes."""
        return Query(self.lemma, self.tags, self.language)


Form = Output
"""One form with its probability; a sequence-level ensemble has a lower bound of it"""


@dataclass(frozen=True)
class Inflection(ProvenOutputs):
    """The forms predicted for one query.

    `ProvenOutputs` describes `certificate`, `warnings` and `only`; its outputs are the forms.

    Attributes:
        question: the query.
        forms: the most probable first; none if no form finished within the length limit.
        least: probability below which `at_least` left forms out.
        left_out: number of the forms that `at_least` left out.
    """

    question: Question
    forms: tuple[Form, ...]
    certificate: Certificate
    warnings: tuple[str, ...]
    only: bool
    least: float = 0.0
    left_out: int = 0

    def at_least(self, prob: float) -> Inflection:
        """Return the prediction without the forms below a probability, which are counted."""
        kept = tuple(form for form in self.forms if form.prob >= prob)
        left_out = self.left_out + len(self.forms) - len(kept)
        return replace(self, forms=kept, least=max(prob, self.least), left_out=left_out)

    @property
    def complete(self) -> bool:
        """Whether `forms` has every form of positive probability."""
        return self.level in ("only", "exhaustive") and not self.left_out

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `inflect --json`; JSON has no infinity: null for log(0)."""
        forms = []
        for form in self.forms:
            record = form.to_dict()
            forms.append({"form": record.pop("text"), **record})
        return {
            "language": self.question.language,
            "lemma": self.question.lemma,
            "tags": list(self.question.tags),
            "forms": forms,
            **({"least": self.least, "left_out": self.left_out} if self.least else {}),
            **self.proof_record(),
        }

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        query = f"{self.question.lemma} {';'.join(self.question.tags)} {self.question.language}"
        return self.html_table(query, self.forms)
