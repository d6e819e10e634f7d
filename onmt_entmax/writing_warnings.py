"""Warn of queries that are written in another way than the training data, and of mixed scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple
from unicodedata import normalize

from onmt_entmax.data.token_names import readable
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.strings.cells import Cells, trained_order
from onmt_entmax.strings.marks import LANGUAGE
from onmt_entmax.strings.scripts import script_mixture
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import CHARACTERS


class Nouns(NamedTuple):
    """Names, in messages, of the strings that a model reads and writes."""

    source: str = "source"
    output: str = "output"


INFLECTION_NOUNS = Nouns("lemma", "form")


@dataclass(frozen=True)
class WritingWarnings:
    """Warns of Unicode normal forms, orders of tags, outer spaces and mixed scripts.

    Attributes:
        task: the task of the models.
        sources: source vocabularies of the models.
        nouns: what warnings call a source and an output.
        cells: the orders in which training had tags; empty if the models do not record them.
    """

    task: StringTask
    sources: Sequence[Vocabulary]
    nouns: Nouns
    cells: Cells

    def of(self, query: Query, outputs: Iterable[str], has_unseen: bool) -> list[str]:
        """Return the warnings for a query.

        Args:
            query: the query.
            outputs: the outputs that were predicted for it.
            has_unseen: whether training did not see some tokens of the query.
        """
        warnings = [self._other_normal_form(query, has_unseen), self._other_order(query)]
        if self.task.source == CHARACTERS and query.source != query.source.strip():
            warnings.append(f"the {self.nouns.source} begins or ends with a space")
        if self.task.source.kind == "characters":
            warnings.append(script_mixture(query.source))
        # Inflection keeps the script of its source. Transliteration does not, and has no tags.
        has_characters = self.task.source == CHARACTERS and self.task.target == CHARACTERS
        if self.task.has_tags and has_characters:
            warnings.append(self._mixed_outputs(query.source, outputs))
        return list(filter(None, warnings))

    def _other_order(self, query: Query) -> str:
        """Return a warning if training had the tags of a query only in another order; else ""."""
        order = trained_order(self.cells, query.language, query.tags)
        if order is None:
            return ""
        return f"training has these tags in another order: {self.task.tag_separator.join(order)}"

    def _other_normal_form(self, query: Query, has_unseen: bool) -> str:
        """Return a warning if training had the source's characters in another normal form; else "".

        Sources are not normalised for the user, since the data of some models is in no normal form.

        Args:
            query: the query.
            has_unseen: whether training did not see some tokens of the query.
        """
        unit = self.task.source
        if unit.kind == "text":  # transforms divide it
            return ""
        # NFD is tried only if a token is unseen: if a source has the character `ä`, and training
        # has `a` and U+0308, then `ä` is unseen. NFC is always tried. If a source has `a` and
        # U+0308, and training has `ä`, both tokens may be known, since training may have U+0308
        # after letters with which Unicode does not compose it, such as `z`.
        forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD") if has_unseen else ("NFC",)
        language = LANGUAGE + query.language
        for form in forms:
            normalised = normalize(form, query.source)
            new = set(unit.encode(normalised)) - set(unit.encode(query.source))
            in_training = all(
                new <= set(source.seen.get(language, source.tokens)) for source in self.sources
            )
            if new and in_training:
                characters = ", ".join(sorted(map(readable, new)))
                return (
                    f"the {self.nouns.source} is not in Unicode's normal form {form}, in which "
                    f"training has {characters}: normalise it"
                )
        return ""

    def _mixed_outputs(self, source: str, outputs: Iterable[str]) -> str:
        """Return a warning that names the first output with mixed scripts and counts others; or "".

        Args:
            source: source of the query, whose script outputs should have.
            outputs: the outputs. One that is equal to the source is left out, since a source that
                mixes scripts has a warning of its own.
        """
        texts = [text for text in dict.fromkeys(outputs) if text != source]
        mixtures = [described for text in texts if (described := script_mixture(text, source))]
        if len(mixtures) > 1:
            others = counted(len(mixtures) - 1, f"other {self.nouns.output}")
            return f"{mixtures[0]} (and {others})"
        return mixtures[0] if mixtures else ""
