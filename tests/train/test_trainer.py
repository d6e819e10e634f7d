"""The trainer: updates, resuming, averages, losses that are not finite, the best and the end."""

import copy
import gc
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.checkpoint import best_step, checkpoint_steps, load, read_training_state
from onmt_entmax.cli.train import main as train
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.errors import UserError
from onmt_entmax.nn.transformer import KINDS, alpha_parameters, learned_alphas
from onmt_entmax.train import trainer
from onmt_entmax.train.trainer import MAX_SKIPPED, Trainer, frozen_heap
from tests.commands import json_lines
from tests.toy import write_config
from tests.train.trainers import (
    LEARNED,
    after_each_update,
    assert_equal,
    give_dev_losses,
    make_losses_nan,
    read_reports_late,
    resumed_trainer,
    trainer_of,
    weights,
)


@pytest.fixture(params=[False, True], ids=["packed", "padded"])
def padded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Train on padded batches, too, as on a GPU; plain calls stand in for CUDA graphs."""
    monkeypatch.setattr(trainer, "PADDED_ON_CPU", request.param)
    return bool(request.param)


# --- an update -------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["sents", "tokens"])
def test_an_update_is_a_step_on_the_mean_over_all_its_batches(
    tmp_path: Path, padded: bool, normalization: str
) -> None:
    """With one batch in the first update, and three in the second.

    The divisor counts neither padding nor start symbols.
    """
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=0.5, max_grad_norm=0, dropout=0.0,
        label_smoothing=0.1, normalization=normalization, accum_count=[1, 3], accum_steps=[0, 1],
        train_steps=2, valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    model, pad = copy.deepcopy(run.model).train(), run.batches.data.vocabularies.target.pad
    stream = TrainingBatches(run.batches.data)
    stream.shapes = run.batches.shapes
    first, *others = islice(stream, 4)
    for batches in ([first], others):
        sizes = {
            "sents": sum(batch.target.size(1) for batch in batches),
            "tokens": sum(int((batch.target[1:] != pad).sum()) for batch in batches),
        }
        results = [model.generator.loss(*model.hidden_states(batch), pad, 0.1) for batch in batches]
        loss = sum(result.loss for result in results) / sizes[normalization]
        parameters = list(model.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= 0.5 * gradient
    run.train()
    for one, other in zip(weights(run.model), weights(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=1.0, max_grad_norm=0.01, train_steps=1,
        valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    before = weights(run.model)
    run.train()
    moved = [a - b for a, b in zip(weights(run.model), before, strict=True)]
    assert float(torch.nn.utils.get_total_norm(moved)) == pytest.approx(0.01, rel=1e-3)


def test_a_plateau_lowers_the_rate_at_once_and_only_where_the_loss_rose(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", decay_method="plateau", learning_rate=1.0,
        learning_rate_decay=0.7, train_steps=6, valid_steps=1,
    )  # fmt: skip
    give_dev_losses(run, 3.0, 2.0, 2.0, 2.5, 2.4, 2.6)
    rates: list[float] = []
    after_each_update(run, lambda: rates.append(run.optimizer.param_groups[0]["lr"]))
    run.train()
    assert rates == pytest.approx([1, 1, 1, 1, 0.7, 0.7])
    assert run.state.decay == pytest.approx(0.49)


@pytest.mark.parametrize(
    ("optim", "rate"), [("adam", 0.1), ("sgd", None), ("adagrad", None), ("adafactor", 0.1)]
)
def test_each_update_has_the_rates_of_its_number(
    tmp_path: Path, padded: bool, optim: str, rate: float | None
) -> None:
    """Learned alphas may have a learning rate of their own."""
    changes = {"optim": optim, "alpha_learning_rate": rate, "decay_method": "rsqrt"}
    run = trainer_of(tmp_path, train_steps=3, warmup_steps=2, **{**LEARNED, **changes})
    groups = run.optimizer.param_groups
    assert [len(group["params"]) for group in groups] == [len(run.update.parameters) - 3, 3]
    rates: list[list[float]] = []
    after_each_update(run, lambda: rates.append([float(group["lr"]) for group in groups]))
    run.train()
    factors = [max(step, 2) ** -0.5 for step in (1, 2, 3)]
    assert rates == [pytest.approx([0.005 * f, (rate or 0.005) * f]) for f in factors]


def test_alphas_learn(tmp_path: Path, padded: bool) -> None:
    run = trainer_of(tmp_path, train_steps=3, **LEARNED)
    before = [alpha.detach().clone() for alpha in alpha_parameters(run.model)]
    run.train()
    for alpha, first in zip(alpha_parameters(run.model), before, strict=True):
        assert not alpha.equal(first)


def test_dropout_changes_at_its_steps(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, dropout=[0.3, 0.1, 0.2], attention_dropout=[0.4, 0.5, 0.6],
        dropout_steps=[0, 2, 3], train_steps=4, valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    dropouts: list[tuple[float, ...]] = []
    run.model.update_dropout = lambda *values: dropouts.append(values)
    run.train()
    assert dropouts == [(0.3, 0.4), (0.3, 0.4), (0.1, 0.5), (0.2, 0.6)]


WARM_UP = {"attention_warmup_steps": 20, "train_steps": 24, "valid_steps": 4}


def alphas_of_warm_up(run: Trainer, attention: nn.Module) -> tuple[list[float], list[float]]:
    """Return a layer's alpha in each update and in each validation."""
    training: list[float] = []
    validation: list[float] = []

    def evaluate(_: object) -> dict[str, float]:
        validation.append(attention.alpha)
        return {"loss": 1.0}

    after_each_update(run, lambda: training.append(attention.alpha))
    run.evaluate = evaluate
    run.train()
    return training, validation


# 1 + step / 20, as softmax below 1.1
RISING = [1, 1, *(1 + step / 20 for step in range(2, 20)), 2, 2, 2, 2]


def test_recurrent_attention_begins_as_softmax_and_is_measured_sparse(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, global_attention_function="sparsemax", **WARM_UP)
    training, validation = alphas_of_warm_up(run, run.model.decoder.attn)
    assert training == pytest.approx(RISING)
    assert validation == [2.0] * 6


def test_attention_of_a_transformer_begins_as_softmax_and_is_measured_sparse(
    tmp_path: Path,
) -> None:
    """Learned alphas do not rise."""
    changes = {**LEARNED, "encoder_attention_function": "sparsemax"}
    run = trainer_of(tmp_path, **changes, **WARM_UP)
    training, validation = alphas_of_warm_up(run, run.model.encoder.transformer[0].self_attn)
    assert training == pytest.approx(RISING)
    assert validation == [2.0] * 6
    assert run.model.decoder.transformer_layers[0].self_attn.alpha is None  # it is learned


@pytest.mark.parametrize(
    ("dtype", "in_training"), [("float32", None), ("bfloat16", torch.bfloat16)]
)
def test_bfloat16_products_are_of_training_alone(
    tmp_path: Path, dtype: str, in_training: torch.dtype | None
) -> None:
    run = trainer_of(tmp_path, matmul_dtype=dtype, train_steps=2)
    dtypes: list[torch.dtype | None] = []
    after_each_update(run, lambda: dtypes.append(run.model.decoder.matmul_dtype))
    run.train()
    assert dtypes == [in_training] * 2
    run.model.eval()
    assert run.model.decoder.matmul_dtype is run.model.encoder.matmul_dtype is None


def test_bfloat16_products_hardly_change_the_loss(tmp_path: Path) -> None:
    losses = []
    for dtype in ("float32", "bfloat16"):
        run = trainer_of(tmp_path, matmul_dtype=dtype, train_steps=2, dropout=0.0)
        run.train()
        losses.append(run.selection.best)
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    """As conftest.py does."""
    gc.freeze()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > 0


# --- a resumed run is the uninterrupted one --------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"average_decay": 0.05, "accum_count": 2, "decay_method": "plateau", "dropout": 0.2},
        {"average_decay": 0.3, "average_every": 2, "attention_warmup_steps": 15, "bucket_size": 50,
         "optim": "adafactor"},
        {**LEARNED, "alpha_learning_rate": 0.05, "average_decay": 0.05},
        {"optim": "adagrad", "transforms": ["tokendrop"], "tokendrop_temperature": 5.0},
    ],
)  # fmt: skip
def test_a_resumed_run_is_the_uninterrupted_one(
    tmp_path: Path, padded: bool, changes: dict[str, object]
) -> None:
    changes = {"save_checkpoint_steps": 7, "train_steps": 18, "valid_steps": 5, **changes}
    whole = trainer_of(tmp_path, **changes)
    whole.train()
    # Step 7 is of save_checkpoint_steps, step 10 perhaps of a validation that was the best.
    for step in {7, 10}.intersection(checkpoint_steps(tmp_path / "run")):
        again = resumed_trainer(tmp_path, step, **changes)
        assert again.state.step == step
        again.train()
        assert_equal(weights(again.model), weights(whole.model))
        with whole.average.applied(), again.average.applied():
            assert_equal(weights(again.model), weights(whole.model))
        assert again.batches.position == whole.batches.position
        assert again.selection.state_dict() == whole.selection.state_dict()
        for name in ("decay", "previous_loss"):
            assert getattr(again.state, name) == getattr(whole.state, name), name


def test_the_validation_at_an_interruption_decides_nothing_for_what_follows(
    tmp_path: Path,
) -> None:
    """The extra validation at step 5 may find the best model.

    It does not count for early stopping and the plateau, as if the run had not been interrupted.
    """
    losses = {2: 1.0, 4: 0.9, 5: 0.5, 6: 0.91, 8: 0.7, 10: 0.6, 12: 0.8, 14: 0.9, 16: 0.1}
    changes = {"rnn_size": 8, "valid_steps": 2, "early_stopping": 2, "save_checkpoint_steps": 5}
    changes |= {"decay_method": "plateau"}

    def outcome(run: Trainer) -> tuple[int, str]:
        run.evaluate = lambda model: {"loss": losses[run.state.step]}
        ended = run.train()
        return ended.step, ended.reason

    whole = trainer_of(tmp_path / "whole", train_steps=20, **changes)
    assert outcome(whole) == (14, "early_stopping")
    beginning = trainer_of(tmp_path / "parts", train_steps=5, **changes)
    assert outcome(beginning) == (5, "train_steps")
    again = resumed_trainer(tmp_path / "parts", 5, train_steps=20, **changes)
    assert outcome(again) == (14, "early_stopping")
    assert again.selection.best_step == 5
    assert again.state.decay == whole.state.decay < 1


def test_a_kill_before_the_best_is_named_is_repaired_on_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"train_steps": 4, "valid_steps": 2, "save_checkpoint_steps": 2}
    monkeypatch.setattr(trainer, "remember_best", lambda *_: None)
    run = trainer_of(tmp_path, **changes)
    give_dev_losses(run, 2.0, 1.0)
    run.train()
    assert best_step(tmp_path / "run") is None
    monkeypatch.undo()
    assert resumed_trainer(tmp_path, 4, **changes).train().step == 4
    assert best_step(tmp_path / "run") == 4


# --- averages --------------------------------------------------------------------------------


class Averaged(NamedTuple):
    """A training with an average of weights."""

    trainer: Trainer
    weights: list[list[Tensor]]
    """Those after each update."""

    @classmethod
    def of(cls, folder: Path, **changes: object) -> "Averaged":
        run = trainer_of(folder, average_decay=0.3, train_steps=14, valid_steps=100, **changes)
        after_updates: list[list[Tensor]] = []
        after_each_update(run, lambda: after_updates.append(weights(run.model)))
        run.train()
        return cls(run, after_updates)


@pytest.mark.parametrize("every", [1, 4])
def test_the_average_is_the_formula(tmp_path: Path, every: int) -> None:
    run, after_updates = Averaged.of(tmp_path, average_every=every)
    expected = [weight.double() for weight in after_updates[0]]
    for step in range(1 + every, 15, every):
        share = max(0.3, 1 - (step + 1) / (step + 10))
        expected = [
            (1 - share) * average + share * weight
            for average, weight in zip(expected, after_updates[step - 1], strict=True)
        ]
    with run.average.applied():
        for weight, average in zip(weights(run.model), expected, strict=True):
            torch.testing.assert_close(weight.double(), average, rtol=1e-5, atol=1e-6)


def test_the_average_is_applied_for_a_while(tmp_path: Path) -> None:
    run, after_updates = Averaged.of(tmp_path)
    with run.average.applied() as raw:
        assert_equal(raw, after_updates[-1])
    assert_equal(weights(run.model), after_updates[-1])


def test_the_average_is_saved_and_validated(tmp_path: Path) -> None:
    run, _ = Averaged.of(tmp_path)
    saved = load(tmp_path / "run" / "step_14").model
    with run.average.applied():
        assert_equal(weights(saved), weights(run.model))
    with torch.no_grad():
        assert run.evaluate(saved)["loss"] == run.selection.best


# --- losses that are not finite --------------------------------------------------------------


@pytest.mark.parametrize("optim", ["adam", "sgd"])
def test_a_loss_of_nan_stops_and_changes_nothing(tmp_path: Path, padded: bool, optim: str) -> None:
    run = trainer_of(tmp_path, batch_size=8, optim=optim, learning_rate=0.01)
    make_losses_nan(run, {12})
    match = r"the (loss|gradient norm) is nan at step 12; lower the learn"
    with pytest.raises(UserError, match=match):
        run.train()
    assert all(weight.isfinite().all() for weight in weights(run.model))
    assert checkpoint_steps(tmp_path / "run") == [10]


NAN_STEPS = (3, 4, 13)


class Skipping(NamedTuple):
    """A training of 13 updates, of which three have a loss of nan and are skipped."""

    trainer: Trainer
    weights: list[list[Tensor]]
    """Those before the first update, and after each."""
    averages: list[list[Tensor]]
    """Those after each update."""


@pytest.fixture(scope="module", params=[False, True], ids=["packed", "padded"])
def skipping_padded(request: pytest.FixtureRequest) -> Iterator[bool]:
    """As `padded`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "PADDED_ON_CPU", request.param)
        yield bool(request.param)


@pytest.fixture(scope="module", params=[("adam", 3), ("sgd", 0)], ids=["late", "at once"])
def skipping(
    request: pytest.FixtureRequest,
    skipping_padded: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> Skipping:
    """Losses are read some updates later, as on a GPU, or at once."""
    optim, delay = request.param
    run = trainer_of(
        tmp_path_factory.mktemp("skipping"), on_nonfinite="skip", average_decay=0.3, optim=optim,
        train_steps=13, valid_steps=100,
    )  # fmt: skip
    read_reports_late(run, delay)
    give_dev_losses(run, 1.0)
    make_losses_nan(run, {*NAN_STEPS})
    result = Skipping(run, [weights(run.model)], [])

    def note_weights() -> None:
        result.weights.append(weights(run.model))
        with run.average.applied():
            result.averages.append(weights(run.model))

    after_each_update(run, note_weights)
    assert run.train().step == 13
    return result


def test_a_skipped_update_changes_no_weight(skipping: Skipping) -> None:
    unchanged = [
        step
        for step in range(1, 14)
        if all(map(Tensor.equal, skipping.weights[step], skipping.weights[step - 1]))
    ]
    assert unchanged == [*NAN_STEPS]


def test_a_skipped_update_changes_no_average(skipping: Skipping) -> None:
    for step in NAN_STEPS:
        assert_equal(skipping.averages[step - 1], skipping.averages[step - 2])


def test_skipped_updates_are_counted_and_saved(skipping: Skipping) -> None:
    assert skipping.trainer.state.skipped == 3
    checkpoint = skipping.trainer.run.path / "step_13"
    assert read_training_state(checkpoint)["run"]["skipped"] == 3


def test_a_run_that_skips_every_update_ends(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, on_nonfinite="skip", train_steps=1000, valid_steps=1000, rnn_size=4)
    make_losses_nan(run, {2, *range(10, 1000)})
    with pytest.raises(UserError, match=f"at step {9 + MAX_SKIPPED} and {MAX_SKIPPED} upd"):
        run.train()


# --- the best model, and the end -------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "values", "patience", "step", "best"),
    [
        ("loss", (3.0, 3.5, 2.0, 2.0, 2.5, 1.0), 2, 5, 3),
        ("exact_match", (0.0, 0.0, 0.0, 0.0, 5.0), 3, 4, 4),
    ],
)
def test_a_run_stops_after_so_many_validations_that_are_no_better(
    tmp_path: Path, selection: str, values: tuple[float, ...], patience: int, step: int, best: int
) -> None:
    """An equal value is not better, but of models without one right output the newest is best."""
    limits = {"train_steps": 9, "valid_steps": 1, "early_stopping": patience}
    run = trainer_of(tmp_path, rnn_size=8, selection=selection, **limits)
    remaining = iter(values)
    run.evaluate = lambda _: {"loss": 1.0, selection: next(remaining)}
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (step, "early_stopping")
    assert best_step(tmp_path / "run") == best


def test_a_measure_that_is_not_finite_is_worse_than_any_other(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=3, valid_steps=1)
    give_dev_losses(run, math.nan, 3.0, math.nan)
    run.train()
    assert (run.selection.best, best_step(tmp_path / "run")) == (3.0, 2)


def test_a_limit_of_time_counts_the_time_before_resuming(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=4, valid_steps=100, max_seconds=1000)
    give_dev_losses(run, 1.0)
    run.clock.seconds = 1000 - 1e-6  # as of a run that is resumed
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (1, "max_seconds")


def test_a_limit_of_epochs(tmp_path: Path) -> None:
    changes = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}
    run = trainer_of(tmp_path, rnn_size=8, batch_size=120, **changes)
    validations = give_dev_losses(run, 2.0, 1.0)
    outcome = run.train()
    assert validations == [4, 8]  # two batches an epoch
    assert (outcome.step, outcome.reason) == (8, "train_epochs")


# --- whole commands --------------------------------------------------------------------------


def test_learned_alphas_are_logged_and_saved(tmp_path: Path) -> None:
    changes = {"tensorboard": True, "train_steps": 20, "save_checkpoint_steps": 10}
    path = write_config(tmp_path, **LEARNED, **changes)
    assert train(["-config", str(path)]) == 0
    run = tmp_path / "run"
    lines = json_lines(run / "metrics.jsonl")
    rows = [row for row in lines if row["kind"] == "alpha"]
    assert [row["step"] for row in rows] == [0, 10, 20]
    assert {*rows[0]} == {"kind", "step", *KINDS}
    assert rows[0] != {**rows[1], "step": 0}
    for row in rows[1:]:
        model = load(run / f"step_{row['step']}").model
        assert learned_alphas(model) == {kind: row[kind] for kind in KINDS}


def test_the_prior_reaches_the_loss_and_survives_resuming(tmp_path: Path) -> None:
    path = write_config(
        tmp_path, train_steps=4, save_checkpoint_steps=2, valid_steps=100, label_smoothing=0.2
    )

    def trained_bias(folder: str, prior: str, *more: str) -> Tensor:
        run = ["-config", str(path), "-save_model", str(tmp_path / folder)]
        assert train([*run, "-label_smoothing_prior", prior, *more]) == 0
        return load(tmp_path / folder / "step_4").model.generator.bias

    uniform, unigram = trained_bias("uniform", "uniform"), trained_bias("unigram", "unigram")
    assert not uniform.equal(unigram)
    checkpoint = str(tmp_path / "unigram" / "step_2")
    assert trained_bias("resumed", "unigram", "-train_from", checkpoint).equal(unigram)
