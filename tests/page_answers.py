"""A search as the page of `serve` makes it, and its outputs in a form that tests compare.

An answer of the page has a record, as a report has. A prediction of a `Transducer`, which searches
for as many outputs, is what the record must agree with.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.proven_outputs import Output
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.transducer import Transducer

LISTED = 4  # outputs that an answer lists
BUDGET = 500  # prefixes that a search may expand
SIZES = {"beam_size": 4, "max_length": 6}
TASK = SearchTask(SearchConfig(n_best=LISTED, **SIZES), method="exact", budget=Budget(BUDGET))


def transducer_of(models: Path | list[Path]) -> Transducer:
    """Return a transducer that lists as many outputs as `TASK` does."""
    return Transducer(models, n_best=LISTED, **SIZES)


def recorded_outputs(record: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the texts of a record, and their probabilities within a tolerance."""
    return [
        (hypothesis["text"], pytest.approx(hypothesis["prob"], abs=1e-6))
        for hypothesis in record["hypotheses"]
    ]


def predicted_outputs(outputs: Sequence[Output]) -> list[tuple[str, float]]:
    """Return the texts and the probabilities of outputs of a transducer."""
    return [(output.text, output.prob) for output in outputs]
