"""`prepare ... --minutes`: trainings planned for a time, with speeds in the place of measurements.

tests/cli/test_plans.py has the rule itself.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import planning, prepare_files, prepare_sigmorphon
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.train import timing
from onmt_entmax.train.timing import Timed
from tests.commands import ROOT
from tests.in_process import Main, exit_status, refusal

TURKISH = ["--data", str(ROOT / "data" / "samples"), "--languages", "turkish"]
RATE = 100_000  # updates a second of a network of one layer, times its size
BFLOAT16_RATE = 2 * RATE
TRAINING_SHARE = 0.96  # of the time; validations have the rest


class ConstantSpeeds:
    """Speeds in the place of those of a machine: the smaller the network, the faster.

    Each network is measured with what `prepare` wrote.
    """

    examples = 4080  # of the training data
    development_pairs = 100

    def __init__(self, data: object, vocabulary: object, device: object) -> None:
        self.device = device

    def training_speeds(self, networks: list[Timed], seconds: float) -> list[float]:
        assert seconds <= 30
        rates = {"float32": RATE, "bfloat16": BFLOAT16_RATE}
        return [
            rates[network.training.matmul_dtype] / network.model.rnn_size / network.model.enc_layers
            for network in networks
        ]

    def validation_speeds(self, network: Timed, validation: object) -> tuple[float, float]:
        return 3000.0, 400.0


@pytest.fixture(scope="module")
def constant_speeds() -> Iterator[None]:
    """Measure nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "Stopwatch", ConstantSpeeds)
        yield


def planned(main: Main, arguments: Sequence[object], out: Path) -> TrainingSetup:
    """Run a command; return the training that it planned."""
    assert exit_status(main, [*map(str, arguments), "--out", str(out)]) == 0
    return training_setup(["-config", str(out / "train.yaml")])


def inflection(folder: Path) -> list[str]:
    """Arguments of `prepare sigmorphon`."""
    return TURKISH


def translation(folder: Path) -> list[str]:
    """Write 40 pairs; return arguments of `prepare files`."""
    paths = [folder / "a.src", folder / "a.tgt"]
    for path in paths:
        lines = [f"{word} {word[::-1]}{n}" for n, word in enumerate(["tree", "house"] * 20)]
        path.write_text("\n".join(lines) + "\n")
    files = ["--train", *map(str, paths), "--val", *map(str, paths)]
    return ["--languages", "xx", "yy", *files, "--symbols", "30", "--max_ratio", "20"]


class Case(NamedTuple):
    """A command, the time, and the network that it plans."""

    main: Main
    arguments_of: Callable[[Path], list[str]]
    minutes: float
    size: int
    dropout: float


class Plan(NamedTuple):
    """What a command planned and said."""

    case: Case
    setup: TrainingSetup
    head: str
    """The comments at the beginning of the configuration."""
    errors: str
    """The standard error."""

    @property
    def updates(self) -> float:
        """The updates that fit the time."""
        seconds = TRAINING_SHARE * 60 * self.case.minutes
        return seconds * BFLOAT16_RATE / self.case.size / self.setup.data.batch_size


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Case(prepare_sigmorphon.main, inflection, 15, 300, 0.5), id="inflection"),
        pytest.param(
            Case(prepare_sigmorphon.main, inflection, 0.01, 200, 0.1), id="inflection in no time"
        ),
        pytest.param(Case(prepare_files.main, translation, 15, 384, 0.3), id="translation"),
        pytest.param(
            Case(prepare_files.main, translation, 0.01, 384, 0.3), id="translation in no time"
        ),
    ],
)
def plan(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    constant_speeds: None,
) -> Plan:
    case: Case = request.param
    folder = tmp_path_factory.mktemp("plan")
    arguments = [*case.arguments_of(folder), "--minutes", case.minutes]
    with redirect_stderr(io.StringIO()) as errors:
        setup = planned(case.main, arguments, folder / "out")
    head, *_ = (folder / "out" / "train.yaml").read_text().partition("\ndata:")
    return Plan(case, setup, head, errors.getvalue())


def test_the_choice_is_printed_and_stands_in_the_configuration(plan: Plan) -> None:
    size, batch_size = plan.case.size, plan.setup.data.batch_size
    for line in (
        f"Planned for {plan.case.minutes} minutes of this machine's CPU",
        f"Chosen: 1 layer of {size}, batches of {batch_size}, bfloat16: the ",
    ):
        assert line in plan.errors
        assert f"# {line}" in plan.head


def test_the_training_has_the_chosen_network(plan: Plan) -> None:
    assert plan.setup.model.rnn_size == plan.case.size
    assert plan.setup.training.dropout == (plan.case.dropout,)
    assert plan.setup.training.matmul_dtype == "bfloat16"


def test_the_time_is_a_limit_to_which_the_learning_rate_falls(plan: Plan) -> None:
    training = plan.setup.training
    assert training.max_seconds == 60 * plan.case.minutes
    assert training.train_steps is None
    assert training.optimizer.decay_method == "cosine"


def test_a_validation_comes_before_the_end(plan: Plan) -> None:
    assert plan.setup.training.valid_steps * 1.5 <= max(plan.updates + 1, 1.5)


def test_the_warmup_takes_at_most_a_fifth(plan: Plan) -> None:
    assert 1 <= plan.setup.training.optimizer.warmup_steps <= max(plan.updates / 5, 1)


@pytest.mark.usefixtures("constant_speeds")
@pytest.mark.parametrize(
    ("main", "arguments_of"),
    [(prepare_sigmorphon.main, inflection), (prepare_files.main, translation)],
    ids=["inflection", "translation"],
)
def test_a_plan_that_is_lost_is_warned_of_once(
    main: Main,
    arguments_of: Callable[[Path], list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The configuration of a plan is the command's own file, which it may overwrite."""
    arguments, out = arguments_of(tmp_path), tmp_path / "out"
    warned = []
    for options in (["--minutes", "15"], ["--minutes", "15"], [], []):
        planned(main, [*arguments, *options], out)
        lost = "train.yaml: was planned for a time; without --minutes"
        warned.append(lost in capsys.readouterr().err)
    assert warned == [False, False, True, False]


def test_a_configuration_without_a_plan_names_the_option(tmp_path: Path) -> None:
    planned(prepare_sigmorphon.main, TURKISH, tmp_path)
    assert "--minutes of `prepare`" in (tmp_path / "train.yaml").read_text()


class Interrupted(ConstantSpeeds):
    """A measurement that Ctrl-C ends."""

    def training_speeds(self, networks: list[Timed], seconds: float) -> list[float]:
        raise KeyboardInterrupt


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files a second run replaced, with other subwords, until it measured."""
    arguments, out = translation(tmp_path), tmp_path / "out"
    planned(prepare_files.main, arguments, out)
    monkeypatch.setattr(timing, "Stopwatch", Interrupted)
    again = [*arguments, "--symbols", "20", "--minutes", "15", "--out", str(out)]
    assert exit_status(prepare_files.main, again) == 130
    return out


def test_an_interrupted_measurement_leaves_the_record_of_the_files(interrupted: Path) -> None:
    recorded = json.loads((interrupted / "prepare.json").read_text())["sha256"]
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in interrupted.iterdir()
        if path.name != "prepare.json"
    }
    assert digests == recorded


def test_an_interrupted_measurement_leaves_a_training_without_a_plan(interrupted: Path) -> None:
    setup = training_setup(["-config", str(interrupted / "train.yaml")])
    assert setup.training.train_steps == 2_000


@pytest.mark.usefixtures("constant_speeds")
@pytest.mark.parametrize("minutes", [[], ["--minutes", 15]], ids=["no plan", "plan"])
def test_the_sizes_that_the_user_names_are_kept(minutes: list[object], tmp_path: Path) -> None:
    sizes = ["--size", 64, "--layers", 2, "--batch", 8]
    setup = planned(prepare_sigmorphon.main, [*TURKISH, *minutes, *sizes], tmp_path)
    assert (setup.model.rnn_size, setup.model.enc_layers, setup.data.batch_size) == (64, 2, 8)
    assert setup.model.tgt_word_vec_size == 64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpu"], "--gpu measures a GPU to plan for --minutes, which are missing"),
        (["--gpu", "--minutes", 5], "--gpu: there is no GPU here to measure"),
        (["--size", 65], "--size 65: must be even"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused_and_leaves_nothing(
    options: list[object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    out = tmp_path / "out"
    assert message in refusal(prepare_sigmorphon.main, [*TURKISH, "--out", out, *options])
    assert not out.exists()


def test_a_plan_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a moment instead of twenty seconds."""
    monkeypatch.setattr(planning, "_SECONDS", 0.01)
    arguments = [*TURKISH, "--minutes", 3, "--size", 16]
    setup = planned(prepare_sigmorphon.main, arguments, tmp_path)
    assert (setup.training.max_seconds, setup.model.rnn_size) == (180, 16)
