"""`prepare sigmorphon` of tables with headings that it does not know, and with named columns."""

from pathlib import Path

import pytest

from tests.cli.preparing import read_lines
from tests.cli.sigmorphon import Prepared, prepare_into, run_prepare_sigmorphon
from tests.cli.tables import write_table


@pytest.fixture(params=[[], ["--columns", "lemma,form,tags"]], ids=["guessed", "named columns"])
def headed(request: pytest.FixtureRequest, tmp_path: Path) -> Prepared:
    """What the command makes of tables with a German heading, whose words are unknown to it."""
    data = tmp_path / "data"
    data.mkdir()
    for part in ("train", "dev"):
        rows = ("Wort\tForm\tMerkmale", f"a{part}\tab\tV;PST", "b\tbb\tN")
        write_table(data / f"x-{part}", *rows)
    return prepare_into(tmp_path / "out", "--data", data, *request.param)


def test_a_heading_is_not_a_row(headed: Prepared) -> None:
    assert read_lines(headed.folder / "dev.src") == ["lang=x +V +PST a d e v", "lang=x +N b"]


def test_a_heading_that_is_left_out_is_printed(headed: Prepared) -> None:
    assert "; heading 'Wort\\tForm\\tMerkmale' left out" in headed.printed


def test_the_printed_query_is_the_first_row_below_the_heading(headed: Prepared) -> None:
    assert " x adev 'V;PST'\n" in headed.printed


def test_columns_and_language_may_be_named(tmp_path: Path) -> None:
    table = write_table(tmp_path / "a.x", "past(a;b)\tdrew\t1\tdraw")
    options = ["--columns", "tags,form,-,lemma", "--language", "english"]
    run_prepare_sigmorphon("--train", table, *options, "--out", tmp_path)
    assert read_lines(tmp_path / "train.src") == ["lang=english +past(a;b) d r a w"]
    assert read_lines(tmp_path / "train.tgt") == ["d r e w"]
