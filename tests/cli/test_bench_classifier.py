"""The benchmark of a linear classifier, with few rows and classes."""

import io
from contextlib import redirect_stdout

import pytest

from tests.in_process import exit_status
from tools.bench import classifier

pytestmark = pytest.mark.slow

CLASSES = 5
CHANCE = 100 / CLASSES  # accuracy in percent


def cells(line: str) -> list[str]:
    """Return the cells of a line of the printed table."""
    return line.strip("| ").split(" | ")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """The printed rows, by headings."""
    sizes = ["--rows", "300", "--features", "4", "--classes", str(CLASSES), "--epochs", "30"]
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(classifier.main, sizes) == 0
    _sizes, _blank, heading, _line, *lines = printed.getvalue().splitlines()
    return [dict(zip(cells(heading), cells(line), strict=True)) for line in lines]


def test_each_loss_has_a_row(rows: list[dict[str, str]]) -> None:
    assert [row["loss"] for row in rows] == ["cross_entropy", "entmax_loss, alpha 2"]


def test_each_loss_learns(rows: list[dict[str, str]]) -> None:
    accuracies = [float(row["accuracy in the last epoch, %"]) for row in rows]
    assert len(accuracies) == 2
    assert min(accuracies) > 2 * CHANCE
