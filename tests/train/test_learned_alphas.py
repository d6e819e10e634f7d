"""Training with learned alphas: they change, and log and checkpoints have them."""

from pathlib import Path

import pytest
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.nn.transformer import ATTENTION_KINDS, alpha_parameters, learned_alphas
from tests.commands import json_lines
from tests.toy import write_config
from tests.train.trainers import LEARNED, trainer_of


@pytest.mark.usefixtures("padded")
def test_training_changes_every_alpha(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, train_steps=3, **LEARNED)
    before = [alpha.detach().clone() for alpha in alpha_parameters(run.model)]
    run.train()
    after = [*alpha_parameters(run.model)]
    assert len(after) == len(ATTENTION_KINDS)
    assert not any(map(Tensor.equal, before, after))


def test_learned_alphas_are_logged_and_saved(tmp_path: Path) -> None:
    """Before the first update, and at each checkpoint; the log has the alphas of that model."""
    changes = {"tensorboard": True, "train_steps": 20, "save_checkpoint_steps": 10}
    path = write_config(tmp_path, **LEARNED, **changes)
    assert train(["-config", str(path)]) == 0
    run = tmp_path / "run"
    rows = [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "alpha"]
    assert [row["step"] for row in rows] == [0, 10, 20]
    first, *later = rows
    assert {*first} == {"kind", "step", *ATTENTION_KINDS}
    assert any(first[kind] != later[0][kind] for kind in ATTENTION_KINDS)
    for row in later:
        model = load(run / f"step_{row['step']}").model
        assert learned_alphas(model) == {kind: row[kind] for kind in ATTENTION_KINDS}
