"""`prepare table`: columns and separators are named, or guessed from headings and tags."""

from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_table
from tests.cli.preparing import FORMS, Printed, prepare, read_lines, write_tables, written_options
from tests.in_process import refusal

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


def test_rows_of_several_training_tables_are_warned_of() -> None:
    write_tables({name: ["ab\ta b"] for name in ("one", "two", "dev")})
    printed = prepare("--train", "one", "two", "--dev", "dev", "--language", "x")
    assert "rows that several training tables have: 1 of 2" in printed.errors


# --- named columns and a heading that usually names others ---

LEMMATISATION = ["form\tlemma", "drew\tdraw", "went\tgo"]
AS_NAMED = ("--columns", "source,target")


@pytest.mark.parametrize(
    "dev",
    [
        pytest.param(["form\tlemma", "saw\tsee"], id="the same heading"),
        pytest.param(["lemma\tform", "see\tsaw"], id="the heading in another order"),
        pytest.param(["saw\tsee"], id="no heading"),
    ],
)
def test_named_columns_are_those_of_all_tables(dev: list[str]) -> None:
    more = ["form\tlemma", "ate\teat"]
    write_tables({"train1": LEMMATISATION, "train2": more, "dev": dev})
    prepare("--train", "train1", "train2", "--dev", "dev", *AS_NAMED)
    assert sorted(read_lines("out/train.src")) == ["a t e", "d r e w", "w e n t"]
    assert read_lines("out/dev.src") == ["s a w"]


def test_the_configuration_has_the_heading_above_named_columns() -> None:
    """So the model reads tables with this heading as training did."""
    write_tables({"train": LEMMATISATION, "dev": LEMMATISATION})
    prepare("--train", "train", "--dev", "dev", *AS_NAMED)
    assert written_options()["task"]["heading"] == ["form", "lemma"]


def test_a_heading_with_usual_names_is_not_recorded() -> None:
    write_tables({"train": LEMMATISATION, "dev": LEMMATISATION})
    prepare("--train", "train", "--dev", "dev")
    assert "heading" not in written_options()["task"]


@pytest.mark.parametrize(
    "first", [[], ["Wort\tForm\tMerkmale"]], ids=["no heading", "a foreign heading"]
)
def test_a_heading_is_followed_where_named_columns_cannot_hold(first: list[str]) -> None:
    """Its tags stand in another place than those of the first table."""
    forms = ["draw\tdrew\tV;PST", "go\twent\tV;PST"]
    write_tables({"train": [*first, *forms], "dev": ["lemma\ttags\tform", "see\tV;PST\tsaw"]})
    prepare("--train", "train", "--dev", "dev", "--columns", "source,target,tags")
    assert read_lines("out/dev.src") == ["+V +PST s e e"]
    assert read_lines("out/dev.tgt") == ["s a w"]


@pytest.mark.parametrize(
    ("columns", "train", "dev", "source"),
    [
        pytest.param(
            "source,target", "lemma\tform", "forms\tlemmas\nsaw\tsee", "s e e", id="exchanged"
        ),
        pytest.param(
            "source,target", "", "form\tlemma\nsaw\tsee", "s e e", id="below no other heading"
        ),
        pytest.param(
            "source,target,-", "", "lemma\tcount\tform\nsee\t1\tsaw", "s e e", id="of others"
        ),
    ],
)
def test_a_usual_heading_is_followed_where_the_first_table_does_not_contradict(
    columns: str, train: str, dev: str, source: str
) -> None:
    more = "\t1" * (columns.count(",") - 1)
    rows = [f"draw\tdrew{more}", f"go\twent{more}"]
    write_tables({"train": [*filter(None, [train]), *rows], "dev": dev.split("\n")})
    prepare("--train", "train", "--dev", "dev", "--columns", columns)
    assert read_lines("out/dev.src") == [source]


def test_a_heading_with_other_names_than_the_contradicting_one_is_refused() -> None:
    write_tables({"train": LEMMATISATION, "dev": ["wordform\tlemma", "saw\tsee"]})
    arguments = ["--train", "train", "--dev", "dev", *AS_NAMED, "--out", "out"]
    message = refusal(prepare_table.main, arguments)
    assert "dev: its heading is 'wordform | lemma', but training named 'form' for source" in message


# --- a heading whose names are not usual ---


@pytest.mark.parametrize("columns", ["", "source,tags,target"], ids=["guessed", "named"])
def test_a_foreign_heading_in_another_order_is_followed(columns: str) -> None:
    train = ["wort\tmerkmale\tform", "gehen\tV;PST\tging", "sehen\tV;PST\tsah"]
    write_tables({"train": train, "dev": ["form\tmerkmale\twort", "lief\tV;PST\tlaufen"]})
    prepare("--train", "train", "--dev", "dev", "--columns", columns)
    assert read_lines("out/dev.src") == ["+V +PST l a u f e n"]
    assert written_options()["task"]["heading"] == ["wort", "merkmale", "form"]


def test_a_heading_that_begins_all_tables_is_left_out() -> None:
    """Neither its names nor tags below tell it."""
    write_tables(
        {
            "train": ["Wort\tAussprache", "Haus\thaʊs", "Maus\tmaʊs"],
            "dev": ["Aussprache\tWort", "laʊs\tLaus"],
        }
    )
    printed = prepare("--train", "train", "--dev", "dev")
    assert (
        "train: columns source, target between tabs (guessed; --columns names them); heading"
        in (printed.out)
    )
    assert len(read_lines("out/train.src")) == 2
    assert read_lines("out/dev.src") == ["L a u s"]


# --- tables that lack a column, or have it elsewhere ---


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
