"""`prepare table` of tables whose headings have no usual names, or whose tags stand elsewhere."""

import pytest

from onmt_entmax.cli import prepare_table
from tests.cli.preparing import prepare, read_lines, write_tables, written_options
from tests.in_process import refusal

pytestmark = pytest.mark.usefixtures("working_folder")

# --- a heading whose names are not usual ---


@pytest.mark.parametrize("columns", ["", "source,tags,target"], ids=["guessed", "named"])
def test_a_foreign_heading_in_another_order_is_followed(columns: str) -> None:
    train = ["wort\tmerkmale\tform", "gehen\tV;PST\tging", "sehen\tV;PST\tsah"]
    write_tables({"train": train, "dev": ["form\tmerkmale\twort", "lief\tV;PST\tlaufen"]})
    prepare("--train", "train", "--dev", "dev", "--columns", columns)
    assert read_lines("out/dev.src") == ["+V +PST l a u f e n"]
    assert written_options()["task"]["heading"] == ["wort", "merkmale", "form"]


def test_a_heading_that_begins_all_tables_is_left_out() -> None:
    """Nothing else tells that it is one: its names are not usual, and there are no tags below."""
    write_tables(
        {
            "train": ["Wort\tAussprache", "Haus\thaʊs", "Maus\tmaʊs"],
            "dev": ["Aussprache\tWort", "laʊs\tLaus", "aʊs\taus"],
        }
    )
    printed = prepare("--train", "train", "--dev", "dev")
    assert (
        "train: columns source, target between tabs (guessed; --columns names them); heading"
        in (printed.out)
    )
    assert len(read_lines("out/train.src")) == 2
    assert read_lines("out/dev.src") == ["L a u s", "a u s"]


# --- tables that have a further column, lack one, or have it elsewhere ---


def test_a_further_column_of_a_table_is_left_out() -> None:
    """UniMorph's tables have one, of segmentations. The tags tell the other columns."""
    write_tables(
        {"train": ["draw\tdrew\tV;PST", "go\twent\tV;PST"], "dev": ["eat\tate\tV;PST\teat|ed"]}
    )
    prepare("--train", "train", "--dev", "dev")
    assert read_lines("out/dev.src") == ["+V +PST e a t"]


def refused(dev: list[str], *options: str) -> str:
    """Return the error about a dev table, where the train table has its tags in column 3."""
    write_tables({"train": ["draw\tdrew\tV;PST", "go\twent\tV;PST"], "dev": dev})
    arguments = ["--train", "train", "--dev", "dev", *options, "--out", "out"]
    return refusal(prepare_table.main, arguments)


@pytest.mark.parametrize(
    "options", [(), ("--columns", "source,target,tags")], ids=["guessed", "named"]
)
def test_tags_in_another_column_are_refused(options: tuple[str, ...]) -> None:
    message = refused(["V;PST\tsee\tsaw", "V;PST\teat\tate"], *options)
    assert message.endswith(
        "dev: column 1 has the tags of training, and not column 3; name the columns of this table "
        "in its first line, such as `source`, `tags` and `target`"
    )


def test_a_table_without_tags_is_refused() -> None:
    assert "; no tags, but train has source, target, tags" in refused(["lemma\tform", "see\tsaw"])
