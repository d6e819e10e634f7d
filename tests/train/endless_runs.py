"""Runs without an end, which tests end, and what happens while they validate."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from onmt_entmax.train import run_inputs
from onmt_entmax.train.validation import Evaluate
from tests.toy import write_config


def endless(folder: Path, **changes: object) -> list[str]:
    """Return the arguments of a run without an end, which saves nothing before it ends."""
    settings = {"train_steps": 10**6, "save_checkpoint_steps": 10**6, "valid_steps": 5}
    path = write_config(folder, rnn_size=8, selection="token_accuracy", **settings | changes)
    return ["-config", str(path)]


def while_evaluating(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something once, in the first validation; validations measure nothing."""
    validations = count(1)

    def make_evaluate(*_: object) -> Evaluate:
        def evaluate(model: object) -> dict[str, float]:
            if next(validations) == 1:
                do()
            return {"loss": 1.0, "token_accuracy": 50.0, "support": 2.0}

        return evaluate

    monkeypatch.setattr(run_inputs, "make_evaluate", make_evaluate)
