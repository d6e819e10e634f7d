"""The base of `Prediction` and `Inflection`: outputs, and what is proven about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from onmt_entmax.files import finite
from onmt_entmax.search.certificate import Certificate, Level


@dataclass(frozen=True)
class Output:
    """One output with its probability, or a lower bound of it: see `ProvenOutputs`."""

    text: str
    log_prob: float
    prob: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as an object for JSON, with null for log(0)."""
        return finite({"text": self.text, "prob": self.prob, "log_prob": self.log_prob})


class ProvenOutputs:
    """Mixin of dataclasses with outputs and with these fields.

    The search finds token sequences, and an output is a text. If several sequences may be one text,
    if several models search apart, or if outputs by analogy are mixed in, then the probability of
    an output is a sum over what was found, a lower bound of the text's probability:

        output.prob <= probability of the text <= output.prob + certificate.bound

    If the level is `exhaustive`, it is the text's probability itself. In a sequence-level ensemble,
    the certificate's `log_excluded_bound` is

        log ((1 - w) * mean over the models of max(excluded bound, bound))

    where w is the weight of the analogies, 0 without any.

    Attributes:
        certificate: what is proven about the outputs.
        warnings: reasons why the outputs may be wrong, such as tags or symbols that training did
            not see in this language, symbols that are copied, a source in another Unicode normal
            form than the training sources, or mixed scripts.
        only: whether there is exactly one output, and the search proved that there is no other.
    """

    certificate: Certificate
    warnings: tuple[str, ...]
    only: bool

    @property
    def level(self) -> Level | Literal["only"]:
        """`only` if there is a single possible output, else the level of the certificate.

        `exhaustive`: every output of positive probability was found. `optimal`: the first is
        proven to be the most probable. `none`: neither is proven.
        """
        return "only" if self.only else self.certificate.level

    def proof_record(self) -> dict[str, Any]:
        """Return what is proven, and the warnings, for JSON; `certificate` is the level."""
        certificate = self.certificate
        return {
            "certificate": self.level,
            "proven": certificate.proven,
            "bound": certificate.bound,
            "mass": min(certificate.mass, 1.0),  # rounding may exceed 1
            "warnings": list(self.warnings),
        }

    def html_table(self, query: str, outputs: Sequence[Output]) -> str:
        """Return outputs with their probabilities as a table for a notebook.

        Args:
            query: the caption, before the level and the warnings.
            outputs: the rows.
        """
        rows = "".join(
            f"<tr><td><bdi>{escape(output.text)}</bdi></td><td>{output.prob:.4f}</td></tr>"
            for output in outputs
        )
        notes = "".join(f"<br>{escape(text)}" for text in self.warnings)
        return (
            f"<table><caption><bdi>{escape(query)}</bdi>: {self.level}{notes}</caption>"
            f"<tr><th>output</th><th>probability</th></tr>{rows}</table>"
        )
