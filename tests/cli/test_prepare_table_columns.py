"""`prepare table`: columns and separators are named, or guessed from headings and tags.

Each test writes tables to an empty working folder, and reads what the command writes to its folder
`out`. Headings that contradict named columns are in test_prepare_table_headings.py.
"""

from pathlib import Path

import pytest

from tests.cli.preparing import FORMS, Printed, prepare, read_lines, write_tables, written_options

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def named_columns(working_folder: Path) -> Printed:
    """What the command prints about a table whose columns and separators are named."""
    rows = ["k\tx-y\tA.B\tdeu", "l\tz\tA\tdeu"]
    write_tables({"train.tsv": rows, "dev.tsv": rows[1:]})
    words = "--columns target,source,tags,language --separator source=- --separator tags=."
    return prepare("--train", "train.tsv", "--dev", "dev.tsv", *words.split())


@pytest.mark.usefixtures("named_columns")
def test_named_columns_and_separators_divide_rows() -> None:
    assert read_lines("out/dev.src") == ["lang=deu +A z"]
    assert sorted(read_lines("out/train.src")) == ["lang=deu +A +B x y", "lang=deu +A z"]


def test_rows_of_a_column_of_languages_are_counted(named_columns: Printed) -> None:
    assert "\nlanguage deu: train: 2 rows; dev: 1 row\n" in named_columns.out


@pytest.mark.usefixtures("named_columns")
def test_the_configuration_has_named_columns_and_separators() -> None:
    assert written_options()["task"] == {
        "columns": ["target", "source", "tags", "language"],
        "separators": {"source": "-", "tags": "."},
    }


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["lemma,inflected,features", "draw,drew,V;PST"], id="by a heading"),
        pytest.param(["draw\tdrew\tV;PST"], id="by the tags"),
    ],
)
def test_tables_may_have_their_columns_in_another_order(rows: list[str]) -> None:
    write_tables({"a.trn": FORMS, "a.dev": rows})
    prepare("--train", "a.trn", "--dev", "a.dev")
    assert read_lines("out/dev.src") == ["+V +PST d r a w"]
    assert read_lines("out/dev.tgt") == ["d r e w"]


def test_a_table_without_heading_follows_that_of_training() -> None:
    """Nothing else tells which of its two columns is the source."""
    write_tables({"train": ["pronunciation\tword", "a b\tab", "b a\tba"], "dev": ["c d\tef"]})
    prepare("--train", "train", "--dev", "dev")
    assert read_lines("out/dev.src") == ["e f"]
    assert read_lines("out/dev.tgt") == ["c d"]
    assert set(read_lines("out/train.src")) == {"a b", "b a"}
