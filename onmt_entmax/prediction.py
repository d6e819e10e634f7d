"""The outputs that are predicted for one query, and what is proven about them.

`Transducer` returns a `Prediction`. `Inflection`, for inflected forms, shares its record and table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from onmt_entmax.files import finite
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.strings.task import Query


@dataclass(frozen=True)
class Output:
    """One output with its probability; where outputs were averaged, a lower bound of it."""

    text: str
    log_prob: float
    prob: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them: null for log(0)."""
        return finite({"text": self.text, "prob": self.prob, "log_prob": self.log_prob})


@dataclass(frozen=True)
class Prediction:
    """The outputs predicted for one query.

    Several sequences may be one text, and several models may search apart. Then the probability of
    an output is a sum: a lower bound of the text's probability, which is at most the certificate's
    `bound` larger, and equal if the level is `exhaustive`. In a sequence-level ensemble, the
    certificate's `log_excluded_bound` is the logarithm of a mean over the models, each with the
    larger of its excluded bound and its bound.

    Attributes:
        query: the query.
        outputs: the most probable first; none if no output finished within the length limit.
        certificate: what is proven about the outputs.
        warnings: reasons why the outputs may be wrong: tags and symbols that training never saw, at
            all or in this language, or that are copied; a source in another Unicode normal form
            than the training sources; mixed scripts.
        only: whether there is exactly one output, and the search proved that there is no other.
    """

    query: Query
    outputs: tuple[Output, ...]
    certificate: Certificate
    warnings: tuple[str, ...]
    only: bool

    @property
    def level(self) -> str:
        """`only` if there is a single possible output, else the level of the certificate.

        `exhaustive`: every output of positive probability was found. `optimal`: the first is
        proven to be the most probable. `none`: neither is proven.
        """
        return "only" if self.only else self.certificate.level

    @property
    def text(self) -> str:
        """The most probable output; empty if there is none."""
        return self.outputs[0].text if self.outputs else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON has it."""
        return {
            "source": self.query.source,
            "tags": list(self.query.tags),
            "language": self.query.language,
            "outputs": [output.to_dict() for output in self.outputs],
            **certificate_record(self.level, self.certificate, self.warnings),
        }

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        query = " ".join([self.query.source, ";".join(self.query.tags), self.query.language])
        return outputs_table(query.strip(), self.outputs, self.level, self.warnings)


def certificate_record(
    level: str, certificate: Certificate, warnings: Sequence[str]
) -> dict[str, Any]:
    """Return the certificate and the warnings of a prediction as JSON has them."""
    return {
        "certificate": level,
        "proven": certificate.proven,
        "bound": certificate.bound,
        "mass": min(certificate.mass, 1.0),  # rounding may exceed 1
        "warnings": list(warnings),
    }


def outputs_table(
    query: str, outputs: Sequence[Output], level: str, warnings: Sequence[str]
) -> str:
    """Return outputs with their probabilities as an HTML table for a notebook."""
    rows = "".join(
        f"<tr><td><bdi>{escape(output.text)}</bdi></td><td>{output.prob:.4f}</td></tr>"
        for output in outputs
    )
    notes = "".join(f"<br>{escape(text)}" for text in warnings)
    return (
        f"<table><caption><bdi>{escape(query)}</bdi>: {level}{notes}</caption>"
        f"<tr><th>output</th><th>probability</th></tr>{rows}</table>"
    )
