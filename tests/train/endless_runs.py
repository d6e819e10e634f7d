"""Trainings that go on until a test ends them, and what happens in their first validation."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from onmt_entmax.train import run_inputs
from onmt_entmax.train.validation import Evaluate
from tests.toy import write_config

NEVER = 10**6  # updates that no test waits for


def endless(folder: Path, **changes: object) -> list[str]:
    """Return the arguments of a training that validates after every five updates.

    Without changes it does not end, and saves nothing before a test ends it.

    Args:
        folder: folder for the toy corpora and the run.
        changes: other options of the training.
    """
    options = {
        "train_steps": NEVER,
        "save_checkpoint_steps": NEVER,
        "valid_steps": 5,
        "rnn_size": 8,
        "selection": "token_accuracy",
    }
    return ["-config", str(write_config(folder, **{**options, **changes}))]


def while_evaluating(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Call a function during the first validation of a training.

    No validation measures anything: all give the same numbers.
    """
    validations = count(1)

    def make_evaluate(*_: object) -> Evaluate:
        def evaluate(model: object) -> dict[str, float]:
            if next(validations) == 1:
                do()
            return {"loss": 1.0, "token_accuracy": 50.0, "support": 2.0}

        return evaluate

    monkeypatch.setattr(run_inputs, "make_evaluate", make_evaluate)
