"""The trainer: rules of an update, resuming, averages, non-finite updates, the best and the end."""

import copy
import gc
import math
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import RunFolder, best_step, checkpoint_steps, load, read_training_state
from onmt_entmax.cli.train import main as train
from onmt_entmax.config import OptimizerConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.errors import UserError
from onmt_entmax.nn.transformer import KINDS, alpha_parameters, learned_alphas
from onmt_entmax.train import trainer
from onmt_entmax.train.optimiser import learning_rate_schedule
from onmt_entmax.train.trainer import MAX_SKIPPED, Trainer
from tests.commands import json_lines
from tests.toy import write_config
from tests.train.trainers import (
    LEARNED,
    after_each_update,
    assert_equal,
    measuring,
    poison,
    resumed,
    trainer_of,
    weights,
)


@pytest.fixture(params=[False, True], ids=["packed", "padded"])
def padded(request: pytest.FixtureRequest, monkeypatch) -> bool:
    """Train on padded batches, too, as on a GPU; plain calls stand in for CUDA graphs."""
    monkeypatch.setattr(trainer, "PADDED_ON_CPU", request.param)
    return bool(request.param)


# --- an update -------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["sents", "tokens"])
def test_an_update_is_a_step_on_the_mean_over_all_its_batches(
    tmp_path: Path, padded: bool, normalization: str
) -> None:
    """One batch in the first update, three in the second; the divisor counts neither padding nor
    start symbols."""
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=0.5, max_grad_norm=0, dropout=0.0,
        label_smoothing=0.1, normalization=normalization, accum_count=[1, 3], accum_steps=[0, 1],
        train_steps=2, valid_steps=100,
    )  # fmt: skip
    measuring(run, 1.0)
    model, pad = copy.deepcopy(run.model).train(), run.run.vocabularies.target.pad
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
    measuring(run, 1.0)
    before = weights(run.model)
    run.train()
    moved = [a - b for a, b in zip(weights(run.model), before, strict=True)]
    assert float(torch.nn.utils.get_total_norm(moved)) == pytest.approx(0.01, rel=1e-3)


def test_a_plateau_lowers_the_rate_at_once_and_only_where_the_loss_rose(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", decay_method="plateau", learning_rate=1.0,
        learning_rate_decay=0.7, train_steps=6, valid_steps=1,
    )  # fmt: skip
    measuring(run, 3.0, 2.0, 2.0, 2.5, 2.4, 2.6)
    rates: list[float] = []
    after_each_update(run, lambda: rates.append(run.optimizer.param_groups[0]["lr"]))
    run.train()
    assert rates == pytest.approx([1, 1, 1, 1, 0.7, 0.7])
    assert run.state.decay == pytest.approx(0.49)


COSINE = OptimizerConfig(decay_method="cosine", warmup_steps=4)


def test_a_cosine_rises_over_the_warm_up_and_ends_at_zero() -> None:
    factor = learning_rate_schedule(COSINE, 12)
    after_quarter = 0.5 * (1 + math.cos(math.pi / 4))
    assert [factor(step, 0) for step in (1, 2, 4, 6, 8, 12)] == pytest.approx(
        [0.25, 0.5, 1, after_quarter, 0.5, 0]
    )


def test_a_cosine_by_updates_has_the_same_bits_as_its_definition() -> None:
    """A last bit would change the weights of runs that a seed should repeat."""
    factor = learning_rate_schedule(COSINE, 1237)
    for step in range(1, 1238):
        falling = 0.5 * (1 + math.cos(math.pi * (step - 4) / 1233))
        assert factor(step, 0) == (step / 4 if step <= 4 else falling)


def test_a_cosine_by_time_falls_to_zero_whatever_the_update() -> None:
    factor = learning_rate_schedule(COSINE, None)
    factors = [factor(5 + n // 7, n / 1000) for n in range(1001)]
    assert factors[0] == 1
    assert factors[500] == pytest.approx(0.5)
    assert factors[1000] == factor(9, 1.5) == 0
    assert all(later < earlier for earlier, later in pairwise(factors))
    assert factor(2, 0.5) == pytest.approx(0.25)  # warms up meanwhile


def test_a_cosine_follows_the_limit_that_is_nearer() -> None:
    factor = learning_rate_schedule(COSINE, 12)
    assert [factor(8, 0.25), factor(8, 0.75), factor(12, 0.75)] == pytest.approx(
        [0.5, 0.5 * (1 + math.cos(0.75 * math.pi)), 0]
    )


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
    before = [a.detach().clone() for a in alpha_parameters(run.model)]
    run.train()
    after = [*alpha_parameters(run.model)]
    assert optim != "adam" or not any(a.equal(b) for a, b in zip(before, after, strict=True))
    factors = [max(step, 2) ** -0.5 for step in (1, 2, 3)]
    assert rates == [pytest.approx([0.005 * f, (rate or 0.005) * f]) for f in factors]


def test_dropout_changes_at_its_steps(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, dropout=[0.3, 0.1, 0.2], attention_dropout=[0.4, 0.5, 0.6],
        dropout_steps=[0, 2, 3], train_steps=4, valid_steps=100,
    )  # fmt: skip
    measuring(run, 1.0)
    seen: list[tuple[float, ...]] = []
    run.model.update_dropout = lambda *values: seen.append(values)
    run.train()
    assert seen == [(0.3, 0.4), (0.3, 0.4), (0.1, 0.5), (0.2, 0.6)]


@pytest.mark.parametrize("learned", [False, True])
def test_attention_begins_as_softmax_and_is_measured_sparse(tmp_path: Path, learned: bool) -> None:
    """Learned alphas do not rise."""
    changes = {"attention_warmup_steps": 20, "train_steps": 24, "valid_steps": 4}
    if learned:
        changes |= {**LEARNED, "encoder_attention_function": "sparsemax"}
    else:
        changes |= {"global_attention_function": "sparsemax"}
    run = trainer_of(tmp_path, **changes)
    model = run.model
    attention = model.encoder.transformer[0].self_attn if learned else model.decoder.attn
    seen, measured = [], []
    after_each_update(run, lambda: seen.append(attention.alpha))
    run.evaluate = lambda _: measured.append(attention.alpha) or {"loss": 1.0}
    run.train()
    # 1 + step / 20, as softmax below 1.1
    assert seen == pytest.approx([1, 1, *(1 + step / 20 for step in range(2, 20)), 2, 2, 2, 2])
    assert measured == [2.0] * 6
    assert not learned or model.decoder.transformer_layers[0].self_attn.alpha is None


def test_bfloat16_products_are_of_training_alone(tmp_path: Path) -> None:
    results = []
    for dtype in ("float32", "bfloat16"):
        run = trainer_of(tmp_path, matmul_dtype=dtype, train_steps=2, dropout=0.0)
        inside = []
        after_each_update(run, lambda: inside.append(run.model.decoder.matmul_dtype))  # noqa: B023
        run.train()
        assert set(inside) == {torch.bfloat16 if dtype == "bfloat16" else None}
        run.model.eval()
        assert run.model.decoder.matmul_dtype is run.model.encoder.matmul_dtype is None
        results.append(run.state.previous_loss or run.state.best)
    assert results[0] == pytest.approx(results[1], abs=0.05)


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
    assert gc.get_freeze_count()  # what this process had frozen before stays so
    # Of a period, and of a validation that was the best.
    for step in {7, 10}.intersection(checkpoint_steps(tmp_path / "run")):
        again = resumed(tmp_path, step, **changes)
        assert again.state.step == step
        again.train()
        assert_equal(weights(again.model), weights(whole.model))
        with whole.average.applied(), again.average.applied():
            assert_equal(weights(again.model), weights(whole.model))
        assert again.batches.position == whole.batches.position
        for name in ("best", "best_step", "decay", "waited", "previous_loss"):
            assert getattr(again.state, name) == getattr(whole.state, name), name


def test_what_is_measured_at_the_end_decides_nothing_for_what_follows(tmp_path: Path) -> None:
    """The extra validation at step 5 makes the best model, but does not count for early stopping
    and the plateau, as if the run had not been interrupted."""
    losses = {2: 1.0, 4: 0.9, 5: 0.5, 6: 0.91, 8: 0.7, 10: 0.6, 12: 0.8, 14: 0.9, 16: 0.1}
    changes = {"rnn_size": 8, "valid_steps": 2, "early_stopping": 2, "save_checkpoint_steps": 5}
    changes |= {"decay_method": "plateau"}

    def outcome(run: Trainer) -> tuple[int, str]:
        run.evaluate = lambda model: {"loss": losses[run.state.step]}
        ended = run.train()
        return ended.step, ended.reason

    whole = trainer_of(tmp_path / "whole", train_steps=20, **changes)
    assert outcome(whole) == (14, "early_stopping")
    parts = trainer_of(tmp_path / "parts", train_steps=5, **changes)
    assert outcome(parts) == (5, "train_steps")
    again = resumed(tmp_path / "parts", 5, train_steps=20, **changes)
    assert outcome(again) == (14, "early_stopping")
    assert again.state.best_step == 5
    assert again.state.decay == whole.state.decay < 1


def test_a_kill_before_the_best_is_named_is_made_good(tmp_path: Path, monkeypatch) -> None:
    changes = {"train_steps": 4, "valid_steps": 2, "save_checkpoint_steps": 2}
    monkeypatch.setattr(trainer, "remember_best", lambda *_: None)
    run = trainer_of(tmp_path, **changes)
    measuring(run, 2.0, 1.0)
    run.train()
    assert best_step(tmp_path / "run") is None
    monkeypatch.undo()
    assert resumed(tmp_path, 4, **changes).train().step == 4
    assert best_step(tmp_path / "run") == 4


# --- averages --------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 4])
def test_the_average_is_the_formula(tmp_path: Path, every: int) -> None:
    run = trainer_of(tmp_path, average_decay=0.3, average_every=every, train_steps=14)
    seen: list[list[Tensor]] = []
    after_each_update(run, lambda: seen.append(weights(run.model)))
    run.train()
    expected = [weight.double() for weight in seen[0]]
    for step in range(1 + every, 15, every):
        share = max(0.3, 1 - (step + 1) / (step + 10))
        expected = [
            (1 - share) * average + share * weight
            for average, weight in zip(expected, seen[step - 1], strict=True)
        ]
    with run.average.applied() as raw:
        assert_equal(raw, seen[-1])
        for one, other in zip(weights(run.model), expected, strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6)
        saved = load(tmp_path / "run" / "step_14").model
        assert_equal(weights(saved), weights(run.model))
    assert_equal(weights(run.model), seen[-1])
    with torch.no_grad():
        assert run.evaluate(saved)["loss"] == run.state.best or run.state.best_step < 14


# --- what is not finite ----------------------------------------------------------------------


@pytest.mark.parametrize("optim", ["adam", "sgd"])
def test_a_loss_of_nan_stops_and_changes_nothing(tmp_path: Path, padded: bool, optim: str) -> None:
    run = trainer_of(tmp_path, batch_size=8, optim=optim, learning_rate=0.01)
    poison(run, {12})
    match = r"the (loss|gradient norm) is nan at step 12; lower the learn"
    with pytest.raises(UserError, match=match):
        run.train()
    assert all(weight.isfinite().all() for weight in weights(run.model))
    assert checkpoint_steps(tmp_path / "run") == [10]


@pytest.mark.parametrize(("optim", "delay"), [("adam", 3), ("sgd", 0)])
def test_skipping_leaves_the_update_out(
    tmp_path: Path, padded: bool, optim: str, delay: int
) -> None:
    """Weights, averages and the optimiser stay, also if the value is read late."""
    run = trainer_of(
        tmp_path, on_nonfinite="skip", average_decay=0.3, optim=optim, train_steps=13,
        valid_steps=100,
    )  # fmt: skip
    run._reports.delay = delay
    measuring(run, 1.0)
    poison(run, {3, 4, 13})
    update, seen = run._update, [weights(run.model)]

    def watched(*arguments: object) -> None:
        update(*arguments)
        seen.append(weights(run.model))
        if run.state.step in (2, 4):
            with run.average.applied():
                averages.append(weights(run.model))

    averages: list[list[Tensor]] = []
    run._update = watched
    assert run.train().step == 13
    for step in range(1, 14):
        same = all(a.equal(b) for a, b in zip(seen[step], seen[step - 1], strict=True))
        assert same == (step in (3, 4, 13)), step
    assert_equal(*averages)
    assert run.state.skipped == 3
    assert read_training_state(tmp_path / "run" / "step_13")["run"]["skipped"] == 3


def test_skipping_for_ever_ends(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, on_nonfinite="skip", train_steps=1000, valid_steps=1000, rnn_size=4)
    poison(run, {2, *range(10, 1000)})
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
    given = iter(values)
    run.evaluate = lambda _: {"loss": 1.0, selection: next(given)}
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (step, "early_stopping")
    assert best_step(tmp_path / "run") == best


def test_a_measure_that_is_not_finite_is_worse_than_any_other(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=3, valid_steps=1)
    measuring(run, math.nan, 3.0, math.nan)
    run.train()
    assert (run.state.best, best_step(tmp_path / "run")) == (3.0, 2)


def test_limits_of_time_and_epochs(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=4, valid_steps=100, max_seconds=1000)
    measuring(run, 1.0)
    run.state.seconds = 1000 - 1e-6  # as of a run that is resumed
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (1, "max_seconds")
    changes = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}
    run = trainer_of(tmp_path / "epochs", rnn_size=8, batch_size=120, **changes)
    steps = measuring(run, 2.0, 1.0)
    outcome = run.train()
    assert steps == [4, 8]  # two batches an epoch
    assert (outcome.step, outcome.reason) == (8, "train_epochs")


# --- the clock -------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that tests move."""
    now = [1e6]
    monkeypatch.setattr(trainer.time, "monotonic", lambda: now[0])
    return now


Slowness = Callable[[float], float]
TIMED = {"rnn_size": 8, "decay_method": "cosine", "warmup_steps": 2, "train_steps": None}


def timed(run: Trainer, clock: list[float], update: Slowness, validation: float) -> list[float]:
    """Make updates and validations take a time; return the learning rates of the updates.

    Args:
        run: a trainer of one measure.
        clock: is moved.
        update: seconds of an update, from the seconds since now.
        validation: seconds of a validation.
    """
    began, rates = clock[0], []

    def after_an_update() -> None:
        rates.append(run.optimizer.param_groups[0]["lr"])
        clock[0] += update(clock[0] - began)

    def evaluate(_: object) -> dict[str, float]:
        clock[0] += validation
        return {"loss": 1.0}

    after_each_update(run, after_an_update)
    run.evaluate = evaluate
    return rates


@pytest.mark.parametrize("load", [1.0, 3.0, 0.5], ids=["as planned", "loaded", "faster"])
def test_a_run_ends_in_time_at_rate_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float], load: float
) -> None:
    """The last validation and checkpoint have their time, and so has the command's beginning.

    From the middle on, all takes longer, or less.
    """
    save = RunFolder.save

    def slowly(*arguments: object) -> None:
        clock[0] += 2.0
        save(*arguments)

    monkeypatch.setattr(RunFolder, "save", slowly)
    run = trainer_of(tmp_path, max_seconds=200, valid_steps=20, report_every=1000, **TIMED)
    run._began = began = clock[0] - 5.0
    rates = timed(run, clock, lambda at: 3.0 if at < 100 else 3.0 * load, 6.0)
    outcome = run.train()
    assert outcome.reason == "max_seconds"
    assert run.state.validated == outcome.step
    assert 200 <= clock[0] - began < 200 + 2 * 3 * load
    assert rates[-1] < 0.02 * max(rates)
    # Half of the time is over after 96 seconds, of which 5 + 6 + 2 were for other things.
    assert sum(rate > 0.5 * max(rates) for rate in rates) == pytest.approx((96 - 13) / 3, abs=1.5)
    assert all(later <= earlier for earlier, later in pairwise(rates[2:]))


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, clock: list[float]) -> None:
    def rates(run: Trainer) -> list[float]:
        given = timed(run, clock, lambda _: 1.0, 4.0)
        run.train()
        return given

    changes = {**TIMED, "max_seconds": 60, "valid_steps": 10, "save_checkpoint_steps": 10}
    uninterrupted = rates(trainer_of(tmp_path, **changes))
    clock[0] += 1000
    assert rates(resumed(tmp_path, 20, **changes)) == uninterrupted[20:]
    assert 0 < uninterrupted[-1] < 0.05 * max(uninterrupted)


@pytest.mark.parametrize(
    ("last_validation", "last_save"),
    [(2.0, 1.0), (9.0, 8.0)],
    ids=["quicker validation", "slower save"],
)
def test_a_run_that_ended_by_time_has_nothing_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: list[float],
    last_validation: float,
    last_save: float,
) -> None:
    """Though its end took less time than was kept for it, or more."""
    began, save = clock[0], RunFolder.save

    def saved(*arguments: object) -> None:
        clock[0] += 1.0 if clock[0] < began + 45 else last_save
        save(*arguments)

    monkeypatch.setattr(RunFolder, "save", saved)
    changes = {**TIMED, "max_seconds": 60, "valid_steps": 12, "save_checkpoint_steps": 1}
    run = trainer_of(tmp_path, **changes)
    timed(run, clock, lambda _: 1.0, 9.0)
    evaluate = run.evaluate

    def evaluated(model: object) -> dict[str, float]:
        values = evaluate(model)
        clock[0] -= (9.0 - last_validation) * (clock[0] > began + 45)
        return values

    run.evaluate = evaluated
    assert run.train().reason == "max_seconds"
    again = resumed(tmp_path, run.state.step, **changes)
    after_each_update(again, lambda: pytest.fail("made another update"))
    assert again.train().step == run.state.step


def test_all_processes_have_the_time_of_the_first(tmp_path: Path, clock: list[float]) -> None:
    """Else they would disagree on the rate and on the end."""
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    measuring(run, *range(9, 0, -1))
    run.processes.from_first = lambda value: 77.0 if isinstance(value, float) else value
    run._save()
    assert (run._saving, run.state.seconds) == (77.0, 77.0)


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

    def bias(folder: str, prior: str, *more: str) -> Tensor:
        run = ["-config", str(path), "-save_model", str(tmp_path / folder)]
        assert train([*run, "-label_smoothing_prior", prior, *more]) == 0
        return load(tmp_path / folder / "step_4").model.generator.bias

    uniform, unigram = bias("uniform", "uniform"), bias("unigram", "unigram")
    assert not uniform.equal(unigram)
    begin = ["-train_from", str(tmp_path / "unigram" / "step_2")]
    assert bias("resumed", "unigram", *begin).equal(unigram)
