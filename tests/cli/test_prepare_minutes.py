"""`prepare ... --minutes`: trainings planned for a time, with speeds in the place of measurements.

The rule itself is tested in the files test_plan_*.py.
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
    BFLOAT16_SPEED,
    INFLECTION,
    TRANSLATION,
    Command,
    ConstantSpeeds,
    prepared,
    write_pairs,
)

TRAINING_SHARE = 0.96  # of the time; the rule plans the rest for validations


@pytest.fixture(scope="module")
def constant_speeds() -> Iterator[None]:
    """Measure nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "Stopwatch", ConstantSpeeds)
        yield


# --- plans ---


class Case(NamedTuple):
    """A command and the time, and the network that it plans."""

    command: Command
    minutes: float
    size: int
    dropout: float


# The network of a translation is always the same. Of inflection, 15 minutes suffice for the
# largest, and many passes need the most dropout; in no time, it is the smallest with the least.
CASES = {
    "inflection": Case(INFLECTION, minutes=15, size=300, dropout=0.5),
    "inflection in no time": Case(INFLECTION, minutes=0.01, size=200, dropout=0.1),
    "translation": Case(TRANSLATION, minutes=15, size=384, dropout=0.3),
    "translation in no time": Case(TRANSLATION, minutes=0.01, size=384, dropout=0.3),
}


class Plan(NamedTuple):
    """What a command planned and said."""

    case: Case
    setup: TrainingSetup
    head: str
    """The comments at the beginning of the configuration."""
    errors: str
    """The standard error."""

    @property
    def choice(self) -> tuple[str, str]:
        """The beginnings of the lines that describe the plan."""
        size, batch_size = self.case.size, self.setup.data.batch_size
        return (
            f"Planned for {self.case.minutes} minutes of this machine's CPU",
            f"Chosen: 1 layer of {size}, batches of {batch_size}, bfloat16: the ",
        )

    @property
    def updates(self) -> float:
        """The updates that fit into the time beside the validations; not always a whole one."""
        pairs_per_second = BFLOAT16_SPEED / self.case.size
        seconds = TRAINING_SHARE * 60 * self.case.minutes
        return seconds * pairs_per_second / self.setup.data.batch_size


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def plan(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    constant_speeds: None,
) -> Iterator[Plan]:
    case: Case = request.param
    with pytest.MonkeyPatch.context() as patch:
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
    assert plan.setup.training.dropout == (plan.case.dropout,)
    assert plan.setup.training.matmul_dtype == "bfloat16"


def test_the_time_is_the_only_limit(plan: Plan) -> None:
    training = plan.setup.training
    assert (training.max_seconds, training.train_steps) == (60 * plan.case.minutes, None)


def test_the_learning_rate_falls_up_to_the_end_of_the_time(plan: Plan) -> None:
    assert plan.setup.training.optimizer.decay_method == "cosine"


def test_a_validation_comes_before_the_end(plan: Plan) -> None:
    """It comes after at most two thirds of the updates, or after the first one.

    The 1 in the bracket allows for both numbers of updates, which are rounded.
    """
    assert plan.setup.training.valid_steps <= max((plan.updates + 1) / 1.5, 1)


def test_the_warmup_takes_at_most_a_fifth(plan: Plan) -> None:
    assert 1 <= plan.setup.training.optimizer.warmup_steps <= max(plan.updates / 5, 1)


# --- what a plan leaves as it is ---

LOST = "train.yaml: was planned for a time; without --minutes"


@pytest.mark.usefixtures("constant_speeds", "working_folder")
@pytest.mark.parametrize("command", [INFLECTION, TRANSLATION], ids=["inflection", "translation"])
def test_a_plan_that_is_replaced_by_a_plan_is_not_warned_of(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pairs()
    prepared(command, "--minutes", 15)
    prepared(command, "--minutes", 15)
    assert LOST not in capsys.readouterr().err


@pytest.mark.usefixtures("constant_speeds", "working_folder")
@pytest.mark.parametrize("command", [INFLECTION, TRANSLATION], ids=["inflection", "translation"])
def test_a_plan_that_is_lost_is_warned_of_once(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration of a plan is the command's own file, which it may overwrite."""
    write_pairs()
    prepared(command, "--minutes", 15)
    assert LOST not in capsys.readouterr().err
    prepared(command)
    assert LOST in capsys.readouterr().err
    prepared(command)
    assert LOST not in capsys.readouterr().err


@pytest.mark.usefixtures("working_folder")
def test_a_configuration_without_a_plan_names_the_option() -> None:
    prepared(INFLECTION)
    assert "--minutes of `prepare`" in Path("out/train.yaml").read_text()


@pytest.mark.usefixtures("constant_speeds", "working_folder")
@pytest.mark.parametrize("minutes", [[], ["--minutes", 15]], ids=["no plan", "plan"])
def test_the_sizes_that_the_user_names_are_kept(minutes: list[object]) -> None:
    setup = prepared(INFLECTION, *minutes, "--size", 64, "--layers", 2, "--batch", 8)
    assert (setup.model.rnn_size, setup.model.enc_layers, setup.data.batch_size) == (64, 2, 8)
    assert setup.model.tgt_word_vec_size == 64


# --- a real measurement ---


@pytest.mark.usefixtures("working_folder")
def test_a_plan_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a moment here instead of twenty seconds."""
    monkeypatch.setattr(measured_networks, "_SECONDS", 0.01)
    setup = prepared(INFLECTION, "--minutes", 3, "--size", 16)
    assert (setup.training.max_seconds, setup.model.rnn_size) == (180, 16)
