"""`tools.papers.figures`: its figures are drawn, and what cannot be drawn is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
def run() -> Path:
    write_run(Path("run"))
    return Path("run")


def draw(command: Sequence[str], name: str) -> dict[str, bytes]:
    """Draw a figure; return the content of its files by their endings."""
    success(figures.main, [*command, "--output", f"{name}.png"])
    return {ending: Path(f"{name}.{ending}").read_bytes() for ending in ("pdf", "png")}


def shown_texts(command: Sequence[str]) -> set[str]:
    """Return the texts of a figure, such as labels of axes and tokens."""
    options = figures.parse_arguments([*command, "--output", "unused"])
    figure = figures.COMMANDS[options.command].draw(options)
    return {text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)}


PAIR = ["--source", "a b c", "--target", "u $v$ w"]


class Case(NamedTuple):
    """A command that draws a figure, and texts that tell the figure from an empty one."""

    command: list[str]
    texts: set[str]


FIGURES = [
    Case(["attention", "run/step_3", "--source", "a b c"], {"a", "b", "c"}),
    Case(["attention", "run/step_3", *PAIR], {"a", "b", "c", "u", "$v$", "w"}),
    Case(["forced", "run/step_3", *PAIR], {"u", "$v$", "w"}),
    Case(["mappings"], {"first probability", "softmax", "sparsemax"}),
    Case(
        ["time", "run", "run", "--names", "x", "x"],
        {"minutes of training", "development token accuracy (%)", "x"},
    ),
    Case(
        ["curves", "run"],
        {"training loss a token", "validation loss a token", "validation token accuracy (%)"},
    ),
    Case(["sweep", "run"], {"attention α", "output α", "token accuracy (%)"}),
]


class Drawn(NamedTuple):
    """A figure that was drawn in a folder, with the run that it shows."""

    command: list[str]
    folder: Path
    files: dict[str, bytes]


@pytest.fixture(scope="module", params=[case.command for case in FIGURES], ids=" ".join)
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    folder = tmp_path_factory.mktemp("figure")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_run(Path("run"))
        return Drawn(request.param, folder, draw(request.param, "one"))


def test_all_commands_but_sparsity_are_tested_here() -> None:
    """`test_sparsity.py` draws the figure of `sparsity`, with the models that it measures."""
    assert {case.command[0] for case in FIGURES} == figures.COMMANDS.keys() - {"sparsity"}


def test_every_figure_is_drawn(drawn: Drawn) -> None:
    """Both a PDF and a PNG file are written, whatever the ending of the output is."""
    assert drawn.files["pdf"].startswith(b"%PDF")
    assert drawn.files["png"].startswith(b"\x89PNG")


def test_a_figure_that_is_drawn_again_is_equal_bit_for_bit(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(drawn.folder)
    assert draw(drawn.command, "two") == drawn.files


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("command", "texts"), [pytest.param(*case, id=" ".join(case.command)) for case in FIGURES]
)
def test_a_figure_names_what_it_shows(command: list[str], texts: set[str]) -> None:
    assert texts <= shown_texts(command)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep run --measure accuracy", "no accuracy in it"),
        ("sweep run --fixed 3", "run: no training with attention or output alpha 3"),
        ("time run --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ],
)
@pytest.mark.usefixtures("run")
def test_what_cannot_be_drawn_is_one_line_and_no_file(command: str, message: str) -> None:
    assert message in refusal(figures.main, [*command.split(), "--output", "out"])
    assert not list(Path().glob("out*"))


def test_a_folder_without_results_is_refused() -> None:
    Path("empty").mkdir()
    line = refusal(figures.main, ["sweep", "empty", "--output", "out"])
    assert "empty: no figures.json, and no metrics.jsonl of a run" in line
    assert not list(Path().glob("out*"))
