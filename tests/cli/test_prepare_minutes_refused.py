"""`prepare ... --minutes` that makes no plan: it is refused, or interrupted while it measures."""

import hashlib
import json
from pathlib import Path

import pytest

from onmt_entmax.options.train import training_setup
from onmt_entmax.train import timing
from onmt_entmax.train.timing import Timed
from tests.cli.planning import INFLECTION, TRANSLATION, ConstantSpeeds, prepared, write_pairs
from tests.in_process import exit_status, refusal

# --- refused ---


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ["--gpu"],
            "--gpu measures a GPU to plan for --minutes, which are missing",
            id="GPU without a time",
        ),
        pytest.param(
            ["--gpu", "--minutes", 5], "--gpu: there is no GPU here to measure", id="no GPU"
        ),
        pytest.param(["--size", 65], "--size 65: must be even", id="odd size"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused_and_leaves_nothing(
    options: list[object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    main, arguments = INFLECTION
    assert message in refusal(main, [*arguments, "--out", "out", *options])
    assert not Path("out").exists()


# --- interrupted ---


class InterruptedMeasurement(ConstantSpeeds):
    """A measurement that Ctrl-C ends."""

    def training_speeds(self, networks: list[Timed], seconds: float) -> list[float]:
        raise KeyboardInterrupt


@pytest.fixture
def interrupted(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that was prepared twice; Ctrl-C ended the second call while it measured.

    By then, it had replaced the files of the first call, which has more subwords.
    """
    write_pairs()
    prepared(TRANSLATION)
    monkeypatch.setattr(timing, "Stopwatch", InterruptedMeasurement)
    main, arguments = TRANSLATION
    again = [*arguments, "--symbols", "20", "--minutes", "15", "--out", "out"]
    assert exit_status(main, again) == 130  # the status of an interrupt
    return working_folder / "out"


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
    assert setup.training.train_steps == 2_000  # the fewest of a training without a plan
