"""Rules of training: learning rates, normalisation, logging, the best model and the end."""

from __future__ import annotations

import copy
import math
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from onmt_entmax.checkpoint import best_step
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.train import OptimizerConfig, Trainer
from onmt_entmax.train.optimiser import learning_rate_schedule
from tests.train.test_trainer import after_each_update, resumed, trainer_of, weights


def measuring(trainer: Trainer, *losses: float) -> list[int]:
    """Make validations return these losses; return the steps of the validations."""
    given, steps = iter(losses), []
    trainer.evaluate = lambda _: steps.append(trainer.state.step) or {"loss": next(given)}
    return steps


def rates_of(trainer: Trainer) -> list[float]:
    """Return the learning rate of each update."""
    rates: list[float] = []
    after_each_update(trainer, lambda: rates.append(trainer.optimizer.param_groups[0]["lr"]))
    return rates


# --- the learning rate -----------------------------------------------------------------------


def test_a_plateau_lowers_the_rate_at_once_and_only_where_the_loss_rose(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", decay_method="plateau", learning_rate=1.0,
        learning_rate_decay=0.7, train_steps=6, valid_steps=1,
    )  # fmt: skip
    measuring(trainer, 3.0, 2.0, 2.0, 2.5, 2.4, 2.6)
    rates = rates_of(trainer)
    trainer.train()
    assert rates == pytest.approx([1, 1, 1, 1, 0.7, 0.7])
    assert trainer.state.decay == pytest.approx(0.49)


def test_a_cosine_rises_over_the_warm_up_and_ends_at_zero() -> None:
    factor = learning_rate_schedule(OptimizerConfig(decay_method="cosine", warmup_steps=4), 12)
    found = [factor(step) for step in (1, 2, 4, 6, 8, 12)]
    after_quarter = 0.5 * (1 + math.cos(math.pi / 4))
    assert found == pytest.approx([0.25, 0.5, 1, after_quarter, 0.5, 0])


def test_each_update_has_the_rate_of_its_number(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, decay_method="cosine", warmup_steps=2, learning_rate=0.1,
        train_steps=6, valid_steps=100,
    )  # fmt: skip
    measuring(trainer, 1.0)
    rates = rates_of(trainer)
    trainer.train()
    assert rates == pytest.approx([0.1 * trainer.schedule(step) for step in range(1, 7)])


# --- the gradient ----------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["sents", "tokens"])
def test_an_update_is_a_step_on_the_mean_over_all_its_batches(
    tmp_path: Path, normalization: str
) -> None:
    """One batch in the first update, three in the second; the divisor counts neither padding nor
    start symbols."""
    trainer = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=0.5, max_grad_norm=0, dropout=0.0,
        label_smoothing=0.1, normalization=normalization, accum_count=[1, 3], accum_steps=[0, 1],
        train_steps=2, valid_steps=100,
    )  # fmt: skip
    measuring(trainer, 1.0)
    model, pad = copy.deepcopy(trainer.model).train(), trainer.batches.vocabularies.target.pad
    stream = TrainingBatches(trainer.batches.config, trainer.batches.vocabularies)
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
    trainer.train()
    for one, other in zip(weights(trainer.model), weights(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=1.0, max_grad_norm=0.01, train_steps=1,
        valid_steps=100,
    )  # fmt: skip
    measuring(trainer, 1.0)
    before = weights(trainer.model)
    trainer.train()
    moved = [a - b for a, b in zip(weights(trainer.model), before, strict=True)]
    assert float(torch.nn.utils.get_total_norm(moved)) == pytest.approx(0.01, rel=1e-3)


def test_dropout_changes_at_its_steps(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, dropout=[0.3, 0.1, 0.2], attention_dropout=[0.4, 0.5, 0.6],
        dropout_steps=[0, 2, 3], train_steps=4, valid_steps=100,
    )  # fmt: skip
    measuring(trainer, 1.0)
    seen: list[tuple[float, ...]] = []
    trainer.model.update_dropout = lambda *values: seen.append(values)
    trainer.train()
    assert seen == [(0.3, 0.4), (0.3, 0.4), (0.1, 0.5), (0.2, 0.6)]


# --- what is logged --------------------------------------------------------------------------


class Listening(torch.nn.Module):
    """A training loss that records its results."""

    def __init__(self, loss_of: torch.nn.Module) -> None:
        super().__init__()
        self.loss_of, self.results = loss_of, []

    def forward(self, batch: object) -> object:
        result = self.loss_of(batch)
        self.results.append([float(value.detach()) for value in result])
        return result


def test_what_is_logged_is_of_the_updates_since_the_last_note(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, train_steps=4, valid_steps=100, report_every=2, accum_count=[2],
        decay_method="cosine", warmup_steps=2,
    )  # fmt: skip
    measuring(trainer, 1.0)
    trainer.loss = Listening(trainer.loss)
    notes: list[tuple[int, dict[str, float]]] = []
    trainer.records = SimpleNamespace(
        advance=lambda at: None,
        training=lambda at, values: notes.append((at.step, values)),
        validation=lambda *_: None,
    )
    rates = rates_of(trainer)
    trainer.train()
    assert [step for step, _ in notes] == [2, 4]
    for number, (step, values) in enumerate(notes):
        of_note = trainer.loss.results[4 * number : 4 * number + 4]
        loss, tokens, correct, support = map(sum, zip(*of_note, strict=True))
        assert values["loss"] == pytest.approx(loss / tokens, rel=1e-5)
        assert values["token_accuracy"] == pytest.approx(100 * correct / tokens, rel=1e-5)
        assert values["support"] == pytest.approx(support / tokens, rel=1e-5)
        assert values["learning_rate"] == rates[step - 1]


# --- the best model, and the end -------------------------------------------------------------


def test_a_run_stops_after_so_many_validations_that_are_no_better(tmp_path: Path) -> None:
    """An equal value is not better: the earlier checkpoint stays the best."""
    trainer = trainer_of(tmp_path, rnn_size=8, train_steps=9, valid_steps=1, early_stopping=2)
    measuring(trainer, 3.0, 2.0, 2.0, 2.5, 1.0)
    outcome = trainer.train()
    assert (outcome.step, outcome.reason) == (4, "early_stopping")
    assert best_step(tmp_path / "run") == 2


def test_of_models_without_one_right_output_the_newest_is_the_best(tmp_path: Path) -> None:
    """They wait for an early stop as ever."""
    trainer = trainer_of(
        tmp_path, rnn_size=8, train_steps=9, valid_steps=1, early_stopping=3,
        selection="exact_match",
    )  # fmt: skip
    given = iter([0.0, 0.0, 0.0, 0.0, 5.0])
    trainer.evaluate = lambda _: {"loss": 1.0, "exact_match": next(given)}
    outcome = trainer.train()
    assert (outcome.step, outcome.reason) == (4, "early_stopping")
    assert best_step(tmp_path / "run") == 4


def test_the_validation_at_an_end_does_not_move_an_early_stop(tmp_path: Path) -> None:
    """The extra validation at step 5 makes the best model, but does not count for early stopping,
    as if the run had not been interrupted."""
    losses = {2: 1.0, 4: 0.9, 5: 0.5, 6: 0.7, 8: 0.7, 10: 0.6, 12: 0.8, 14: 0.9, 16: 0.1}
    changes = {"rnn_size": 8, "valid_steps": 2, "early_stopping": 2, "save_checkpoint_steps": 5}

    def outcome(trainer: Trainer) -> tuple[int, str]:
        trainer.evaluate = lambda model: {"loss": losses[trainer.state.step]}
        ended = trainer.train()
        return ended.step, ended.reason

    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = outcome(trainer_of(tmp_path / "whole", train_steps=20, **changes))
    assert outcome(trainer_of(tmp_path / "parts", train_steps=5, **changes)) == (5, "train_steps")
    again = resumed(tmp_path / "parts", 5, train_steps=20, **changes)
    assert outcome(again) == whole == (14, "early_stopping")
    assert again.state.best_step == 5


def test_a_measure_that_is_not_finite_is_worse_than_any_other(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, rnn_size=8, train_steps=3, valid_steps=1)
    measuring(trainer, math.nan, 3.0, math.nan)
    trainer.train()
    assert (trainer.state.best, best_step(tmp_path / "run")) == (3.0, 2)


def test_the_time_before_counts(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, rnn_size=8, train_steps=4, valid_steps=100, max_seconds=1000)
    measuring(trainer, 1.0)
    trainer.state.seconds = 1000 - 1e-6  # as of a run that is resumed
    outcome = trainer.train()
    assert (outcome.step, outcome.reason) == (1, "max_seconds")


def test_epochs_are_counted_for_validations_and_the_end(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path, rnn_size=8, batch_size=120, train_steps=None, valid_steps=None, train_epochs=4,
        valid_epochs=2,
    )  # fmt: skip
    steps = measuring(trainer, 2.0, 1.0)
    outcome = trainer.train()
    assert steps == [4, 8]  # two batches an epoch
    assert (outcome.step, outcome.reason) == (8, "train_epochs")
