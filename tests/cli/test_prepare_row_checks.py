"""`prepare sigmorphon` warns of rows that mix scripts, and of repeated rows."""

from pathlib import Path

import pytest

from tests.cli.sigmorphon import run_prepare_sigmorphon

GOOD_ROWS = [f"б{n}\tб{n}\tN" for n in range(20)]  # all Cyrillic
# These forms have Latin letters: the last one of the first, and all of the second.
MIXED_ROW = "уранак\tура́нкa\tN;GEN"
OTHER_MIXED_ROW = "уранак\turanka\tN;DAT"


@pytest.fixture
def row_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The warnings about 26 rows, of which 6 mix scripts and 4 repeat an earlier one."""
    rows = [*GOOD_ROWS, *[MIXED_ROW] * 5, OTHER_MIXED_ROW]
    (tmp_path / "x").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run_prepare_sigmorphon("--train", tmp_path / "x", "--out", tmp_path)
    return capsys.readouterr().err.splitlines()


def test_rows_that_mix_scripts_are_counted_and_the_first_is_named(row_warnings: list[str]) -> None:
    mixed, _ = row_warnings
    assert "x: rows that mix scripts: 6 of 26: line 21, 'ура́нкa' mixes scripts: " in mixed


def test_five_rows_that_mix_scripts_are_listed(row_warnings: list[str]) -> None:
    mixed, _ = row_warnings
    assert mixed.count("Cyrillic with Latin a (U+0061); ") == 5
    assert mixed.endswith("; and 1 more (onmt-entmax audit lists all)")


def test_repeated_rows_are_counted_and_one_is_named(row_warnings: list[str]) -> None:
    _, repeated = row_warnings
    assert "x: rows that repeat earlier ones: 4 of 26, such as 'уранак', " in repeated
