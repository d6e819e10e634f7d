"""Training on padded batches, as on a GPU; on a CPU plain updates stand in for CUDA graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from onmt_entmax.cli.train import main as train
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import OptionError
from onmt_entmax.options.train import training_setup
from onmt_entmax.train import Trainer, TrainingError, graphs
from onmt_entmax.train.graphs import PaddedUpdates
from tests.toy import write_config
from tests.train.test_learned_alphas import LEARNED, a_of
from tests.train.test_trainer import assert_equal, resumed, trainer_of, weights


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "ON_CPU", True)


def poison(trainer: Trainer, steps: set[int]) -> None:
    """Make the loss of some updates nan."""
    updates = trainer.padded
    assert updates is not None
    accumulate = updates.accumulate

    def changed(batch: object, scale: float) -> None:
        bad = trainer.state.step + 1 in steps
        accumulate(batch, float("nan") if bad else scale)

    updates.accumulate = changed


@pytest.mark.parametrize("changes", [{}, {"accum_count": 3, "normalization": "tokens"}])
def test_trains_as_plain_updates(tmp_path: Path, padded: None, changes: dict[str, object]) -> None:
    changes = {"dropout": 0.0, "average_decay": 0.1, "label_smoothing": 0.1, **changes}
    (tmp_path / "plain").mkdir()
    plain = trainer_of(tmp_path / "plain", cuda_graphs="off", **changes)
    plain.batches.shapes = Shapes(16)  # the same batches
    ours = trainer_of(tmp_path, cuda_graphs="check", **changes)
    assert plain.padded is None
    assert plain.no_graphs == "cuda_graphs is off"
    for trainer in (plain, ours):
        trainer.train()
    assert ours.padded is not None
    assert ours.padded.captured > 1
    for found, expected in zip(weights(ours.model), weights(plain.model), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-4)
    assert ours.state.best == pytest.approx(plain.state.best, rel=1e-4)
    assert ours.state.best_step == plain.state.best_step


def test_learned_alphas_have_their_own_learning_rate(tmp_path: Path, padded: None) -> None:
    changes = LEARNED | {"alpha_learning_rate": 0.1, "dropout": 0.0, "attention_dropout": 0.0}
    trainers = []
    for graphs_option in ("off", "check"):
        trainer = trainer_of(tmp_path, cuda_graphs=graphs_option, train_steps=3, **changes)
        trainer.batches.shapes = Shapes(16)
        trainer.train()
        trainers.append(trainer)
    plain, ours = trainers
    assert ours.padded is not None
    assert [float(group["lr"]) for group in ours.optimizer.param_groups] == pytest.approx(
        [group["lr"] for group in plain.optimizer.param_groups]
    )
    torch.testing.assert_close(a_of(ours.model), a_of(plain.model), rtol=0, atol=1e-3)


def test_resumes_exactly(tmp_path: Path, padded: None) -> None:
    changes = {
        "average_decay": 0.05,
        "accum_count": 2,
        "attention_warmup_steps": 5,
        "decay_method": "plateau",
        "save_checkpoint_steps": 7,
        "train_steps": 25,
    }
    whole = trainer_of(tmp_path, **changes)
    whole.train()
    for step in (7, 20):
        again = resumed(tmp_path, step, **changes)
        again.train()
        assert_equal(weights(again.model), weights(whole.model))
        with whole.average.applied(), again.average.applied():
            assert_equal(weights(again.model), weights(whole.model))
        assert again.batches.position == whole.batches.position


def test_a_run_can_go_on_without_padding(
    tmp_path: Path, padded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer_of(tmp_path, train_steps=10).train()
    monkeypatch.setattr(graphs, "ON_CPU", False)
    again = resumed(tmp_path, 10, train_steps=20)
    assert again.padded is None
    assert again.train().step == 20


def test_a_loss_of_nan_stops(tmp_path: Path, padded: None) -> None:
    trainer = trainer_of(tmp_path)
    poison(trainer, {12})
    with pytest.raises(TrainingError, match=r"gradient norm is nan at step 12 "):
        trainer.train()
    assert (tmp_path / "run" / "nonfinite_step_12.json").is_file()


def test_skipping_changes_nothing(tmp_path: Path, padded: None) -> None:
    trainer = trainer_of(tmp_path, on_nonfinite="skip", average_decay=0.3, train_steps=12)
    poison(trainer, {12})
    update, seen = trainer._update, []

    def watched(batches: list[Batch], received: list[int]) -> None:
        update(batches, received)
        with trainer.average.applied():
            seen.append(weights(trainer.model))
        seen.append(weights(trainer.model))

    trainer._update = watched
    trainer.train()
    assert trainer.state.skipped == 1
    for last, before in zip(seen[-2:], seen[-4:-2], strict=True):
        assert_equal(last, before)
    assert not seen[-3][0].equal(seen[-5][0])


def test_processes_add_their_gradients(tmp_path: Path, padded: None) -> None:
    """Two halves of an update in two processes, whose vectors are summed."""
    first, second = (trainer_of(tmp_path, dropout=0.0) for _ in range(2))
    alone = trainer_of(tmp_path, dropout=0.0)
    stream = iter(alone.batches)
    batches = [next(stream), next(stream)]
    shares = [trainer.padded for trainer in (first, second)]
    whole = alone.padded
    assert isinstance(whole, PaddedUpdates)
    for batch, share in zip(batches, shares, strict=True):
        assert share is not None
        share.accumulate(share.pad(batch), 1 / 32)
        whole.accumulate(whole.pad(batch), 1 / 32)
    gradient = shares[0].gradient + shares[1].gradient
    measured = shares[0].measured + shares[1].measured
    expected = whole.finish(0.01)
    for share in shares:
        share.gradient.copy_(gradient)
        share.measured.copy_(measured)
        torch.testing.assert_close(share.finish(0.01), expected)
    assert_equal(weights(first.model), weights(second.model))
    for found, wanted in zip(weights(first.model), weights(alone.model), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_what_is_not_covered_is_trained_as_before(tmp_path: Path, padded: None) -> None:
    trainer = trainer_of(tmp_path, optim="sgd", train_steps=3)
    assert trainer.padded is None
    assert trainer.no_graphs == "the optimiser is not Adam"
    assert trainer.batches.shapes is None
    trainer.train()


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def setup(**changes: object) -> str:
        arguments = ["-config", str(write_config(tmp_path, **changes))]
        return training_setup(arguments).training.cuda_graphs

    assert setup() == "on"
    assert [setup(cuda_graphs=value) for value in (True, False, "check")] == ["on", "off", "check"]
    with pytest.raises(OptionError, match="tf32 needs a GPU: give gpu_ranks"):
        setup(matmul_dtype="tf32")
    path = write_config(tmp_path, matmul_dtype="tf32", gpu_ranks=[0])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="gpu_ranks: no GPU here"):
        train(["-config", str(path)])
