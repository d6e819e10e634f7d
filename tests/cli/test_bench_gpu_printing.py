"""The tables that the benchmark of a GPU prints: failures are marked."""

import pytest

from tools.bench.gpu_device import Result
from tools.bench.gpu_printing import print_checks, print_table

ERROR: Result = {"what": "losses", "error": "RuntimeError('no memory')", "ok": False}


def table(capsys: pytest.CaptureFixture[str], rows: list[Result]) -> list[list[str]]:
    """Return the cells of the lines of a printed table below its title."""
    print_table("title", rows)
    return [line.split() for line in capsys.readouterr().out.splitlines()[2:]]


def test_a_failed_row_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Result] = [{"words": 8, "ok": True}, {"words": 9, "ok": False}]
    assert table(capsys, rows) == [["words"], ["8"], ["9", "FAILED"]]


def test_columns_of_later_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Result] = [{"ms": 1.0}, {"ms": 2.0, "peer": 3.0}]
    assert table(capsys, rows) == [["ms", "peer"], ["1.0"], ["2.0", "3.0"]]


@pytest.mark.parametrize("rows", [[{"ms": 1.0}, ERROR], [ERROR]], ids=["behind a row", "alone"])
def test_an_error_is_printed_below_the_table(
    capsys: pytest.CaptureFixture[str], rows: list[Result]
) -> None:
    print_table("title", rows)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.strip().startswith("FAILED")
    assert "no memory" in last


def test_a_check_with_an_error_is_counted_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    print_checks("loss", [{"what": "a", "error": 1e-6, "ok": True}, ERROR])
    first, failure = capsys.readouterr().out.splitlines()
    assert first == "loss: 2 checks, 1 failed, largest error 1.0e-06"
    assert "no memory" in failure
