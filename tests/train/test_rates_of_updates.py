"""The learning rate of each update: of all weights, and of learned alphas."""

from pathlib import Path

import pytest

from onmt_entmax.nn.transformer import ATTENTION_KINDS, alpha_parameters
from tests.train.changed_trainers import after_each_update, give_dev_losses
from tests.train.trainers import LEARNED_ALPHAS, trainer_of


def test_a_plateau_lowers_the_rate_at_once_and_only_where_the_loss_rose(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", decay_method="plateau", learning_rate=1.0,
        learning_rate_decay=0.7, train_steps=6, valid_steps=1,
    )  # fmt: skip
    give_dev_losses(run, 3.0, 2.0, 2.0, 2.5, 2.4, 2.6)
    rates: list[float] = []
    after_each_update(run, lambda: rates.append(run.state.optimizer.param_groups[0]["lr"]))
    run.train()
    assert rates == pytest.approx([1, 1, 1, 1, 0.7, 0.7])
    assert run.state.counters.decay == pytest.approx(0.7 * 0.7)


def test_learned_alphas_have_a_parameter_group_of_their_own(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, **LEARNED_ALPHAS)
    weight_group, alpha_group = run.state.optimizer.param_groups
    alphas = [*alpha_parameters(run.model)]
    assert len(alphas) == len(ATTENTION_KINDS)
    assert [id(alpha) for alpha in alpha_group["params"]] == [id(alpha) for alpha in alphas]
    assert len(weight_group["params"]) == len(run.training_step.update.parameters) - len(alphas)


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize(
    ("optim", "alpha_rate"), [("adam", 0.1), ("sgd", None), ("adagrad", None), ("adafactor", 0.1)]
)
def test_each_update_has_the_rates_of_its_number(
    tmp_path: Path, optim: str, alpha_rate: float | None
) -> None:
    """Learned alphas may have a learning rate of their own; None: that of all weights.

    After a warm-up of two updates, the rate falls as the root of their number rises.
    """
    rate = 0.005
    schedule = {"decay_method": "rsqrt", "learning_rate": rate, "warmup_steps": 2}
    of_alphas = {**LEARNED_ALPHAS, "alpha_learning_rate": alpha_rate}
    run = trainer_of(tmp_path, train_steps=3, optim=optim, **schedule, **of_alphas)
    groups = run.state.optimizer.param_groups
    rates: list[list[float]] = []
    after_each_update(run, lambda: rates.append([float(group["lr"]) for group in groups]))
    run.train()
    factors = [max(step, 2) ** -0.5 for step in (1, 2, 3)]
    assert rates == [pytest.approx([rate * f, (alpha_rate or rate) * f]) for f in factors]
