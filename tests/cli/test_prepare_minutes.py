"""`prepare ... --minutes`: the training that is planned for a time.

The files test_plan_*.py test the rule itself. Here, only the last test measures speeds; the others
have those of `ConstantSpeeds`.
"""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import measured_networks
from onmt_entmax.config import TrainingSetup
from onmt_entmax.train import timing
from tests.cli.planning import (
    INFLECTION,
    TRANSLATION,
    Command,
    ConstantSpeeds,
    prepared,
    write_pairs,
)


class Case(NamedTuple):
    """A command, its time, and the training that it plans with `ConstantSpeeds`.

    Attributes:
        command: the command.
        minutes: the value of `--minutes`.
        network: the planned network, as the command describes it.
        size: size of the network's states.
        batch: pairs in an update.
        dropout: its dropout.
        validation: updates up to the first validation.
        warmup: updates in which the learning rate rises.
        beta2: of Adam; 0.999 is the default of `train`.
    """

    command: Command
    minutes: float
    network: str
    size: int
    batch: int
    dropout: float
    validation: int
    warmup: int
    beta2: float


# 0.96 of the time is for updates: 864 seconds of 15 minutes, and 0.576 seconds of 0.01 minutes. In
# each second, a network of one layer trains on 200,000 / size pairs. In 15 minutes there are five
# validations: four equally far apart, and one at the end, after half of that distance, so that the
# first follows 1/4.5 of the updates. In 0.01 minutes there are two, the first after 1/1.5 of the
# updates. The learning rate rises in a fifth of the updates, but in no more than 300 for inflection
# and 400 for translation.
CASES = {
    # 864 * 200,000 / 300 / 32 = 18,000 updates are 301 passes: enough for the largest network, and
    # for the most dropout.
    "inflection": Case(
        INFLECTION,
        minutes=15,
        network="1 layer of 300, batches of 32, bfloat16",
        size=300,
        batch=32,
        dropout=0.5,
        validation=4_000,
        warmup=300,
        beta2=0.98,
    ),
    # 0.576 * 200,000 / 200 / 32 = 18 updates are less than a pass: the smallest network, with the
    # least dropout.
    "inflection in no time": Case(
        INFLECTION,
        minutes=0.01,
        network="1 layer of 200, batches of 32, bfloat16",
        size=200,
        batch=32,
        dropout=0.1,
        validation=12,
        warmup=3,
        beta2=0.98,
    ),
    # 864 * 200,000 / 384 / 64 = 7,031 updates. For translation, network and dropout are always the
    # same.
    "translation": Case(
        TRANSLATION,
        minutes=15,
        network="1 layer of 384, batches of 64, bfloat16",
        size=384,
        batch=64,
        dropout=0.3,
        validation=1_562,
        warmup=400,
        beta2=0.999,
    ),
    # 0.576 * 200,000 / 384 / 64 = 4.7, so 5 updates.
    "translation in no time": Case(
        TRANSLATION,
        minutes=0.01,
        network="1 layer of 384, batches of 64, bfloat16",
        size=384,
        batch=64,
        dropout=0.3,
        validation=3,
        warmup=1,
        beta2=0.999,
    ),
}


class Plan(NamedTuple):
    """What a command planned and printed.

    Attributes:
        case: the command, and the training to expect.
        setup: the training that it planned.
        head: the comments at the beginning of the configuration.
        errors: what it printed on the standard error.
    """

    case: Case
    setup: TrainingSetup
    head: str
    errors: str

    @property
    def choice(self) -> tuple[str, str]:
        """The beginnings of the lines that describe the plan."""
        return (
            f"Planned for {self.case.minutes} minutes of this machine's CPU",
            f"Chosen: {self.case.network}: the ",
        )


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def plan(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plan]:
    case: Case = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "Stopwatch", ConstantSpeeds)
        patch.chdir(tmp_path_factory.mktemp("plan"))
        write_pairs()
        with redirect_stderr(io.StringIO()) as errors:
            setup = prepared(case.command, "--minutes", case.minutes)
        head, *_ = Path("out/train.yaml").read_text().partition("\ndata:")
    return Plan(case, setup, head, errors.getvalue())


def test_the_choice_is_printed(plan: Plan) -> None:
    assert all(line in plan.errors for line in plan.choice)


def test_the_choice_is_a_comment_in_the_configuration(plan: Plan) -> None:
    assert all(f"# {line}" in plan.head for line in plan.choice)


def test_the_training_has_the_chosen_network(plan: Plan) -> None:
    assert plan.setup.model.rnn_size == plan.case.size
    assert plan.setup.data.batch_size == plan.case.batch
    assert plan.setup.training.matmul_dtype == "bfloat16"


def test_the_dropout_suits_the_passes(plan: Plan) -> None:
    assert plan.setup.training.dropout == (plan.case.dropout,)


def test_the_time_is_the_only_limit(plan: Plan) -> None:
    training = plan.setup.training
    assert (training.max_seconds, training.train_steps) == (60 * plan.case.minutes, None)


def test_the_learning_rate_falls_up_to_the_end_of_the_time(plan: Plan) -> None:
    assert plan.setup.training.optimizer.decay_method == "cosine"


def test_adam_forgets_squared_gradients_faster_than_by_default_for_tables_alone(plan: Plan) -> None:
    assert plan.setup.training.optimizer.adam_beta2 == plan.case.beta2


def test_validations_are_spread_over_the_time(plan: Plan) -> None:
    assert plan.setup.training.valid_steps == plan.case.validation


def test_the_learning_rate_rises_in_at_most_a_fifth_of_the_updates(plan: Plan) -> None:
    assert plan.setup.training.optimizer.warmup_steps == plan.case.warmup


@pytest.mark.usefixtures("working_folder")
def test_a_plan_is_made_from_speeds_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurement takes a moment here instead of twenty seconds."""
    monkeypatch.setattr(measured_networks, "_SECONDS", 0.01)
    setup = prepared(INFLECTION, "--minutes", 3, "--size", 16)
    assert (setup.training.max_seconds, setup.model.rnn_size) == (180, 16)
