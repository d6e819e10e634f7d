"""The trainer: averages of weights, non-finite updates and bfloat16."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import best_step, load, read_training_state
from onmt_entmax.data.corpus import all_pairs
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.vocabulary import build_vocabularies, count_tokens
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.processes import Processes
from onmt_entmax.train import Trainer, TrainingError
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.nonfinite import MAX_SKIPPED
from onmt_entmax.train.run_folder import RunFolder
from tests.toy import write_config


def trainer_of(folder: Path, **changes: object) -> Trainer:
    """Return a trainer for the toy task."""
    setup = training_setup(["-config", str(write_config(folder, num_workers=0, **changes))])
    vocabularies = build_vocabularies(
        setup.vocabulary, lambda: count_tokens(all_pairs(setup.data))
    )[0]
    torch.manual_seed(1)
    model = build_model(setup.model, vocabularies)
    return trainer_with(setup, model, TrainingBatches(setup.data, vocabularies))


def trainer_with(setup: TrainingSetup, model: SparseNMTModel, batches: TrainingBatches) -> Trainer:
    run = RunFolder(Path(setup.run.save_model), setup.model, batches.vocabularies, setup.record)
    evaluate = make_evaluate(setup.data, setup.validation, batches.vocabularies)
    return Trainer(model, batches, setup.training, evaluate, run, None, Processes())


def resumed(folder: Path, step: int, **changes: object) -> Trainer:
    """Return the trainer of `trainer_of`, resumed from a checkpoint."""
    setup = training_setup(["-config", str(write_config(folder, num_workers=0, **changes))])
    checkpoint = folder / "run" / f"step_{step}"
    loaded = load(checkpoint)
    trainer = trainer_with(setup, loaded.model, TrainingBatches(setup.data, loaded.vocabularies))
    trainer.load_state_dict(read_training_state(checkpoint))
    return trainer


def weights(model: SparseNMTModel) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_equal(one: list[Tensor], other: list[Tensor]) -> None:
    assert len(one) == len(other)
    assert all(a.equal(b) for a, b in zip(one, other, strict=True))


def after_each_update(trainer: Trainer, do: Callable[[], None]) -> None:
    trainer.optimizer.register_step_post_hook(lambda *_: do())


# --- averages --------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 4])
def test_the_average_is_the_formula(tmp_path: Path, every: int) -> None:
    trainer = trainer_of(tmp_path, average_decay=0.3, average_every=every, train_steps=14)
    seen: list[list[Tensor]] = []
    after_each_update(trainer, lambda: seen.append(weights(trainer.model)))
    trainer.train()
    expected = [weight.double() for weight in seen[0]]
    for step in range(1 + every, 15, every):
        share = max(0.3, 1 - (step + 1) / (step + 10))
        expected = [
            (1 - share) * average + share * weight
            for average, weight in zip(expected, seen[step - 1], strict=True)
        ]
    with trainer.average.applied() as raw:
        assert raw is not None
        assert_equal(raw, seen[-1])
        for one, other in zip(weights(trainer.model), expected, strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6)
    assert_equal(weights(trainer.model), seen[-1])
    saved = load(tmp_path / "run" / "step_14").model
    with trainer.average.applied():
        assert_equal(weights(saved), weights(trainer.model))


def test_the_average_is_evaluated_and_training_resumes_exactly(tmp_path: Path) -> None:
    changes = {"average_decay": 0.05, "average_every": 2, "save_checkpoint_steps": 9}
    whole = trainer_of(tmp_path, train_steps=25, **changes)
    whole.train()
    for step in (9, 10, 18):  # between two shares, and at one
        again = resumed(tmp_path, step, train_steps=25, **changes)
        again.train()
        assert_equal(weights(again.model), weights(whole.model))
        with whole.average.applied(), again.average.applied():
            assert_equal(weights(again.model), weights(whole.model))
    measure = whole.evaluate
    assert measure is not None
    loaded = load(tmp_path / "run" / "step_25").model
    with torch.no_grad():
        assert whole.state.best == measure(loaded)["loss"]


def test_a_run_goes_on_without_the_average_it_had(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = trainer_of(tmp_path / "plain")
    plain.train()
    trainer_of(tmp_path, average_decay=0.1, train_steps=20).train()
    again = resumed(tmp_path, 20, train_steps=30)
    again.train()
    assert_equal(weights(again.model), weights(plain.model))
    assert_equal(weights(load(tmp_path / "run" / "step_30").model), weights(plain.model))


# --- attention that becomes sparse -----------------------------------------------------------


def test_attention_begins_as_softmax_and_is_saved_sparse(tmp_path: Path) -> None:
    changes = {
        "global_attention_function": "sparsemax",
        "attention_warmup_steps": 20,
        "train_steps": 24,
        "valid_steps": 4,
    }
    trainer = trainer_of(tmp_path, **changes)
    attention, seen, measured = trainer.model.decoder.attn, [], []
    after_each_update(trainer, lambda: seen.append(attention.alpha))
    measure = trainer.evaluate
    trainer.evaluate = lambda model: measured.append(attention.alpha) or measure(model)
    trainer.train()
    # 1 + step / 20, as softmax below 1.1
    assert seen == pytest.approx([1, 1, *(1 + step / 20 for step in range(2, 20)), 2, 2, 2, 2])
    assert measured == [2.0] * 6
    assert load(tmp_path / "run" / "step_24").config.global_attention_alpha == 2


def test_a_warm_up_continues_where_it_was(tmp_path: Path) -> None:
    changes = {
        "global_attention_function": "entmax15",
        "attention_warmup_steps": 20,
        "train_steps": 24,
        "save_checkpoint_steps": 8,
    }
    whole = trainer_of(tmp_path, **changes)
    whole.train()
    again = resumed(tmp_path, 8, **changes)
    again.train()
    assert_equal(weights(again.model), weights(whole.model))


# --- the best checkpoint ---------------------------------------------------------------------


def test_a_kill_before_the_best_is_named_is_made_good(tmp_path: Path, monkeypatch) -> None:
    changes = {"train_steps": 20, "valid_steps": 10, "save_checkpoint_steps": 10}
    whole = trainer_of(tmp_path, **changes)
    monkeypatch.setattr("onmt_entmax.train.trainer.remember_best", lambda *_: None)
    whole.train()
    assert whole.state.waited == 0  # the last is the best, and its name was never written
    assert best_step(tmp_path / "run") is None
    monkeypatch.undo()
    again = resumed(tmp_path, 20, **changes)
    assert again.train().step == 20
    assert best_step(tmp_path / "run") == 20


# --- what is not finite ----------------------------------------------------------------------


class Poisoned(torch.nn.Module):
    """A training loss that is nan at given calls."""

    def __init__(self, loss_of: torch.nn.Module, at: set[int]) -> None:
        super().__init__()
        self.loss_of, self.at, self.calls = loss_of, at, 0

    def forward(self, batch: object) -> object:
        self.calls += 1
        result = self.loss_of(batch)
        factor = float("nan") if self.calls in self.at else 1.0
        return result._replace(loss=result.loss * factor)


def test_a_loss_of_nan_stops_and_keeps_its_batch(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, batch_size=8)
    trainer.loss = Poisoned(trainer.loss, {12})
    with pytest.raises(TrainingError, match=r"the loss is nan at step 12 .*lower the learn") as e:
        trainer.train()
    assert "\n" not in str(e.value)
    found = json.loads((tmp_path / "run" / "nonfinite_step_12.json").read_text())
    assert (found["step"], found["loss"]) == (12, "nan")
    again = resumed(tmp_path, 10, batch_size=8)
    batches = iter(again.batches)
    next(batches)
    batch = next(batches)
    (kept,) = found["batches"]
    assert kept["lines"] == list(batch.indices)
    assert kept["source"][0] == batch.source[:, 0, 0].tolist()
    assert [len(row) for row in kept["target"]] == batch.target_lengths.tolist()


def test_an_infinite_gradient_stops_too(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, max_grad_norm=0)
    trainer.model.generator.bias.register_hook(lambda grad: grad * float("inf"))
    with pytest.raises(TrainingError, match=r"the gradient norm is (inf|nan) at step 1"):
        trainer.train()
    assert (tmp_path / "run" / "nonfinite_step_1.json").is_file()


def test_skipping_leaves_the_update_out(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, on_nonfinite="skip", average_decay=0.1)
    trainer.loss = Poisoned(trainer.loss, {3, 4, 20})
    seen: list[int] = []
    after_each_update(trainer, lambda: seen.append(trainer.state.step + 1))
    outcome = trainer.train()
    assert outcome.step == 30
    assert seen == [step for step in range(1, 31) if step not in (3, 4, 20)]
    assert trainer.state.skipped == 3
    assert all(weight.isfinite().all() for weight in weights(trainer.model))
    assert read_training_state(tmp_path / "run" / "step_30")["run"]["skipped"] == 3


def test_skipping_for_ever_ends(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, on_nonfinite="skip", train_steps=1000, valid_steps=1000)
    trainer.loss = Poisoned(trainer.loss, {2, *range(10, 1000)})
    with pytest.raises(TrainingError, match=f"at step {9 + MAX_SKIPPED} and {MAX_SKIPPED} upd"):
        trainer.train()


# --- products in bfloat16 --------------------------------------------------------------------


def test_bfloat16_products_learn_as_well(tmp_path: Path) -> None:
    losses = {}
    for dtype in ("float32", "bfloat16"):
        trainer = trainer_of(
            tmp_path,
            matmul_dtype=dtype,
            train_steps=100,
            valid_steps=100,
            batch_size=32,
            dropout=0.0,
            learning_rate=0.02,
        )
        inside = []
        after_each_update(trainer, lambda: inside.append(trainer.model.decoder.matmul_dtype))  # noqa: B023
        trainer.train()
        assert set(inside) == {torch.bfloat16 if dtype == "bfloat16" else None}
        losses[dtype] = trainer.state.previous_loss
        trainer.model.eval()
        assert trainer.model.decoder.matmul_dtype is trainer.model.encoder.matmul_dtype is None
    assert losses["float32"] < 0.7, "the toy task should be nearly learnt"
    assert abs(losses["bfloat16"] - losses["float32"]) < 0.15
    assert losses["bfloat16"] != losses["float32"]


@pytest.mark.parametrize(
    "changes",
    [{"rnn_type": "GRU"}, {"encoder_type": "mean", "input_feed": 0, "word_vec_size": 32}],
)
def test_bfloat16_is_refused_where_it_would_do_nothing(tmp_path: Path, changes: dict) -> None:
    with pytest.raises(UserError, match="matmul_dtype: bfloat16 is of LSTM"):
        training_setup(["-config", str(write_config(tmp_path, matmul_dtype="bfloat16", **changes))])


# --- the end -------------------------------------------------------------------------------------


def test_what_is_measured_at_the_end_decides_nothing_for_what_follows(tmp_path: Path) -> None:
    """Neither the plateau rule nor early stopping: 20 + 20 updates equal 40."""
    changes = {"optim": "sgd", "learning_rate": 3.0, "decay_method": "plateau", "valid_steps": 6}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    trainer_of(tmp_path / "one", train_steps=40, **changes).train()
    trainer_of(tmp_path / "two", train_steps=20, **changes).train()
    resumed(tmp_path / "two", 20, train_steps=40, **changes).train()
    one, two = (read_training_state(tmp_path / name / "run" / "step_40") for name in ("one", "two"))
    for name in ("decay", "previous_loss", "waited"):
        assert one["run"][name] == two["run"][name]
    assert one["run"]["decay"] < 1


def test_without_a_development_set_checkpoints_come_when_asked_for(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, train_steps=12, valid_steps=3, save_checkpoint_steps=8)
    trainer.evaluate = None
    trainer.train()
    assert sorted(path.name for path in (tmp_path / "run").glob("step_*")) == ["step_12", "step_8"]
