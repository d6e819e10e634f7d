"""`tools.papers.figures`: its figures are drawn, and what cannot be drawn is refused."""

import shlex
from pathlib import Path

import pytest
from matplotlib.text import Text

from tests.in_process import refusal, success
from tests.papers.figure_models import write_run
from tools.papers import figures


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written to the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> None:
    """A run in the folder `run`."""
    write_run(Path("run"))


# Each figure by its command line, with texts that tell it from an empty one.
FIGURES = {
    "attention run/step_3 --source 'a b c'": {"a", "b", "c"},
    "attention run/step_3 --source 'a b c' --target 'u $v$ w'": {"a", "b", "c", "u", "$v$", "w"},
    "forced run/step_3 --source 'a b c' --target 'u $v$ w'": {"u", "$v$", "w"},
    "mappings": {"first probability", "softmax", "sparsemax"},
    "time run run --names x x": {"minutes of training", "development token accuracy (%)", "x"},
    "curves run": {
        "training loss a token",
        "validation loss a token",
        "validation token accuracy (%)",
    },
    "sweep run": {"attention α", "output α", "token accuracy (%)"},
}


def test_all_commands_but_sparsity_are_tested_here() -> None:
    """`test_sparsity.py` draws the figure of `sparsity`, with the models that it measures."""
    assert {command.split()[0] for command in FIGURES} == figures.COMMANDS.keys() - {"sparsity"}


def draw(command: str, name: str) -> dict[str, bytes]:
    """Draw a figure; return the content of its files by their endings."""
    success(figures.main, [*shlex.split(command), "--output", f"{name}.png"])
    return {ending: Path(f"{name}.{ending}").read_bytes() for ending in ("pdf", "png")}


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", FIGURES)
def test_every_figure_is_drawn(command: str) -> None:
    """As PDF and as PNG, whatever the ending of the output is."""
    files = draw(command, "one")
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", FIGURES)
def test_a_figure_that_is_drawn_again_is_equal_bit_for_bit(command: str) -> None:
    assert draw(command, "one") == draw(command, "two")


def shown_texts(command: str) -> set[str]:
    """Return the texts of a figure, such as labels of axes and tokens."""
    options = figures.parse_arguments([*shlex.split(command), "--output", "not written"])
    figure = figures.COMMANDS[options.command].draw(options)
    return {text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)}


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("command", "texts"), FIGURES.items(), ids=FIGURES)
def test_a_figure_names_what_it_shows(command: str, texts: set[str]) -> None:
    assert texts <= shown_texts(command)


@pytest.fixture
def empty_folder() -> None:
    """The folder `empty`."""
    Path("empty").mkdir()


@pytest.mark.usefixtures("run", "empty_folder")
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
def test_what_cannot_be_drawn_is_one_line_and_no_file(command: str, message: str) -> None:
    assert message in refusal(figures.main, [*shlex.split(command), "--output", "out"])
    assert not list(Path().glob("out*"))
