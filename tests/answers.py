"""What answers of the page of `serve` are compared with: predictions of a transducer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.proven_outputs import Output
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.transducer import Transducer

LISTED = 4  # outputs of an answer
BUDGET = 500  # steps of a search
SEARCH = {"beam_size": 4, "max_length": 6}
TASK = SearchTask(SearchConfig(n_best=LISTED, **SEARCH), method="exact", budget=Budget(BUDGET))


def listing(models: Path | list[Path]) -> Transducer:
    """Return a transducer that lists as many outputs as `TASK` does."""
    return Transducer(models, n_best=LISTED, **SEARCH)


def outputs_of(record: dict[str, Any]) -> list[tuple[str, float]]:
    """Return texts and probabilities of a record, to compare with outputs of a transducer."""
    return [
        (hypothesis["text"], pytest.approx(hypothesis["prob"], abs=1e-6))
        for hypothesis in record["hypotheses"]
    ]


def texts_and_probs(outputs: Sequence[Output]) -> list[tuple[str, float]]:
    """Return texts and probabilities of outputs, to compare with those of a record."""
    return [(output.text, output.prob) for output in outputs]
