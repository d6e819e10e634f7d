"""Training with learned alphas: it changes them, logs them and saves them."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.nn.transformer import ATTENTION_KINDS, alpha_parameters, learned_alphas
from tests.commands import json_lines
from tests.toy import write_config
from tests.train.trainers import LEARNED_ALPHAS, trainer_of


@pytest.mark.usefixtures("padded")
def test_training_changes_every_alpha(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, train_steps=3, **LEARNED_ALPHAS)
    before = [alpha.detach().clone() for alpha in alpha_parameters(run.model)]
    run.train()
    after = [*alpha_parameters(run.model)]
    assert len(after) == len(ATTENTION_KINDS)
    assert not any(map(Tensor.equal, before, after))


# --- their record ---


class Logged(NamedTuple):
    """A training of 20 updates with learned alphas, which saves a checkpoint every ten."""

    run: Path
    rows: list[dict[str, Any]]
    """Rows of its log that have alphas."""


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Logged:
    folder = tmp_path_factory.mktemp("logged")
    changes = {"tensorboard": True, "train_steps": 20, "save_checkpoint_steps": 10}
    path = write_config(folder, **LEARNED_ALPHAS, **changes)
    assert train(["-config", str(path)]) == 0
    run = folder / "run"
    rows = [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "alpha"]
    return Logged(run, rows)


def test_alphas_are_logged_before_the_first_update_and_at_each_checkpoint(logged: Logged) -> None:
    assert [row["step"] for row in logged.rows] == [0, 10, 20]


def test_a_row_of_the_log_has_the_alphas_of_each_kind_of_attention(logged: Logged) -> None:
    assert {*logged.rows[0]} == {"kind", "step", *ATTENTION_KINDS}


@pytest.mark.parametrize("row", [1, 2])
def test_logged_alphas_are_those_of_the_checkpoint(logged: Logged, row: int) -> None:
    alphas = logged.rows[row]
    model = load(logged.run / f"step_{alphas['step']}").model
    assert learned_alphas(model) == {kind: alphas[kind] for kind in ATTENTION_KINDS}
