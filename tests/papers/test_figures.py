"""`tools.papers.figures`: every figure is drawn, and what cannot be drawn is refused."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.in_process import refusal, success
from tests.papers.figure_models import write_run
from tools.papers import figures


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written to the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Path:
    write_run(Path("run"))
    return Path("run")


def draw(command: Sequence[str], name: str) -> dict[str, bytes]:
    """Draw a figure; return the content of its files by their endings."""
    success(figures.main, [*command, "--output", f"{name}.png"])
    return {ending: Path(f"{name}.{ending}").read_bytes() for ending in ("pdf", "png")}


each_figure = pytest.mark.parametrize(
    "command",
    [
        ["attention", "run/step_3", "--source", "a b c"],
        ["attention", "run/step_3", "--source", "a b c", "--target", "u $v$ w"],
        ["forced", "run/step_3", "--source", "a b c", "--target", "u $v$ w"],
        ["mappings"],
        ["time", "run", "run", "--names", "x", "x"],
        ["curves", "run"],
        ["sweep", "run"],
    ],
    ids=" ".join,
)


@pytest.mark.usefixtures("run")
@each_figure
def test_every_figure_is_drawn(command: list[str]) -> None:
    """As PDF and as PNG, whatever the ending of the output is."""
    files = draw(command, "one")
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")


@pytest.mark.usefixtures("run")
@each_figure
def test_a_figure_that_is_drawn_again_is_equal_bit_for_bit(command: list[str]) -> None:
    assert draw(command, "one") == draw(command, "two")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep run --measure accuracy", "no accuracy in it"),
        ("sweep run --fixed 3", "run: no training with attention or output alpha 3"),
        ("sweep empty", "empty: no figures.json, and no metrics.jsonl of a run"),
        ("time run --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ],
)
@pytest.mark.usefixtures("run")
def test_what_cannot_be_drawn_is_one_line_and_no_file(command: str, message: str) -> None:
    Path("empty").mkdir()
    assert message in refusal(figures.main, [*command.split(), "--output", "out"])
    assert not Path("out.pdf").exists()
