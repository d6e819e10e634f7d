"""The lines about a run that people see on stderr, which is not a terminal here."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.train.progress import Progress
from onmt_entmax.train.progress_lines import ProgressLines
from tests.train.clocks import FakeClock, replace_clock

CONFIG = TrainingConfig(OptimizerConfig(), train_steps=4000, selection="exact_match")
ENTMAX, SOFTMAX = 1.5, 1.0  # alphas of the output
AVERAGES = {
    "loss": 0.14521,
    "token_accuracy": 90.467,
    "support": 3.667,
    "learning_rate": 0.001949,
    "tokens_per_second": 9.23,
}
MEASURES = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, "exact_match": 61.957}
AT = Progress(step=250, epochs=1.96, seconds=30.0)

Printed = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock by which the speed of a run is measured."""
    return replace_clock(monkeypatch, now=100.0)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Return the lines on stderr since the last call, without the time of day."""
    return lambda: [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def test_averages_of_training_are_a_line(clock: FakeClock, printed: Printed) -> None:
    """The 200 updates from 50 to 250 took 75 seconds, so 3,750 more will take 23:26."""
    with closing(ProgressLines(CONFIG, ENTMAX)) as lines:
        lines.advance(Progress(50, 0.2, 3.0))
        clock.now += 75
        lines.training(AT, AVERAGES)
    assert printed() == [
        "epoch 2     step  250/4000    23:26 left  loss 0.1452  token accuracy  90.5 %  "
        "support    3.7  lr 0.00195         9 tokens/s"
    ]


def test_a_line_of_training_ends_with_skipped_updates_and_gpu_memory(printed: Printed) -> None:
    with closing(ProgressLines(CONFIG, ENTMAX)) as lines:
        lines.training(AT, {**AVERAGES, "skipped": 2, "gpu_gb": 2.6437})
    (line,) = printed()
    assert line.endswith(" tokens/s  2 updates skipped  GPU memory 2.6 GB")


@pytest.mark.parametrize(("best_step", "text"), [(250, "best so far"), (200, "best was step 200")])
def test_a_validation_is_a_line_that_names_the_best(
    best_step: int, text: str, printed: Printed
) -> None:
    with closing(ProgressLines(CONFIG, ENTMAX)) as lines:
        lines.validation(AT, MEASURES, best_step)
    assert printed() == [
        "validation  step  250/4000  loss 0.0828  token accuracy  94.5 %  support    2.0  "
        f"exact match 61.96 %  {text}"
    ]


def test_a_validation_of_softmax_has_a_perplexity_and_no_support(printed: Printed) -> None:
    with closing(ProgressLines(CONFIG, SOFTMAX)) as lines:
        lines.validation(AT, MEASURES, best_step=AT.step)
    (line,) = printed()
    assert "  token accuracy  94.5 %  perplexity 1.09  exact match 61.96 %  " in line


def test_a_validation_has_the_factor_of_a_calibration(printed: Printed) -> None:
    with closing(ProgressLines(CONFIG, ENTMAX)) as lines:
        lines.validation(AT, {**MEASURES, "output_factor": 0.468}, best_step=AT.step)
    (line,) = printed()
    assert "  output times 0.47  " in line


# --- the time that is left, with a limit of 4,000 updates and one of 100 seconds ---------------

BOTH_LIMITS = replace(CONFIG, max_seconds=100.0)


def test_before_the_first_update_the_time_left_is_that_of_the_time_limit(printed: Printed) -> None:
    """It needs no speed: 30 of 100 seconds have passed."""
    with closing(ProgressLines(BOTH_LIMITS, ENTMAX)) as lines:
        lines.validation(Progress(0, 0.0, 30.0), MEASURES, 0)
    (line,) = printed()
    assert " 1:10 left " in line


def test_the_time_left_is_that_of_the_first_limit(clock: FakeClock, printed: Printed) -> None:
    """Half of the updates took 10 seconds; by the time limit, 60 would be left."""
    with closing(ProgressLines(BOTH_LIMITS, ENTMAX)) as lines:
        lines.advance(Progress(0, 0.0, 30.0))
        clock.now += 10
        lines.validation(Progress(2000, 0.1, 40.0), MEASURES, 0)
    (line,) = printed()
    assert " 0:10 left " in line
