"""The outputs that a `Transducer` predicts for one query, and what is proven about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onmt_entmax.proven_outputs import Output, ProvenOutputs
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.strings.task import Query


@dataclass(frozen=True)
class Prediction(ProvenOutputs):
    """The outputs predicted for one query.

    `ProvenOutputs` describes `certificate`, `warnings` and `only`.

    Attributes:
        query: the query.
        outputs: the most probable first; none if no output finished within the length limit.
    """

    query: Query
    outputs: tuple[Output, ...]
    certificate: Certificate
    warnings: tuple[str, ...]
    only: bool

    @property
    def text(self) -> str:
        """The most probable output; empty if there is none, or if it is the empty string."""
        return self.outputs[0].text if self.outputs else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as an object for JSON."""
        return {
            "source": self.query.source,
            "tags": list(self.query.tags),
            "language": self.query.language,
            "outputs": [output.to_dict() for output in self.outputs],
            **self.proof_record(),
        }

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        query = " ".join([self.query.source, ";".join(self.query.tags), self.query.language])
        return self.html_table(query.strip(), self.outputs)
