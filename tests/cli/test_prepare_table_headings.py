"""`prepare table --columns` of tables whose headings name other columns than the option."""

import pytest

from onmt_entmax.cli import prepare_table
from tests.cli.preparing import prepare, read_lines, write_tables, written_options
from tests.in_process import refusal

pytestmark = pytest.mark.usefixtures("working_folder")

# A table of forms and their lemmas. By their usual names, the lemma is the source; with `AS_NAMED`,
# the form is.
LEMMATISATION = ["form\tlemma", "drew\tdraw", "went\tgo"]
AS_NAMED = ("--columns", "source,target")


# --- the first table has the other names ---


@pytest.mark.parametrize(
    "dev",
    [
        pytest.param(["form\tlemma", "saw\tsee"], id="the same heading"),
        pytest.param(["lemma\tform", "see\tsaw"], id="the heading in another order"),
        pytest.param(["saw\tsee"], id="no heading"),
    ],
)
def test_the_first_tables_heading_means_the_named_columns_in_all_tables(dev: list[str]) -> None:
    more = ["form\tlemma", "ate\teat"]
    write_tables({"train1": LEMMATISATION, "train2": more, "dev": dev})
    prepare("--train", "train1", "train2", "--dev", "dev", *AS_NAMED)
    assert sorted(read_lines("out/train.src")) == ["a t e", "d r e w", "w e n t"]
    assert read_lines("out/dev.src") == ["s a w"]


def test_the_configuration_records_a_heading_that_contradicts_the_named_columns() -> None:
    """A model then reads tables with this heading as training did."""
    write_tables({"train": LEMMATISATION, "dev": LEMMATISATION})
    prepare("--train", "train", "--dev", "dev", *AS_NAMED)
    assert written_options()["task"]["heading"] == ["form", "lemma"]


def test_the_configuration_records_no_heading_if_no_columns_are_named() -> None:
    write_tables({"train": LEMMATISATION, "dev": LEMMATISATION})
    prepare("--train", "train", "--dev", "dev")
    assert "heading" not in written_options()["task"]


def test_a_heading_with_other_names_than_the_first_tables_is_refused() -> None:
    write_tables({"train": LEMMATISATION, "dev": ["wordform\tlemma", "saw\tsee"]})
    arguments = ["--train", "train", "--dev", "dev", *AS_NAMED, "--out", "out"]
    message = refusal(prepare_table.main, arguments)
    assert "dev: its heading is 'wordform | lemma', but training named 'form' for source" in message


# --- only the development table has other names ---


@pytest.mark.parametrize(
    "first", [[], ["Wort\tForm\tMerkmale"]], ids=["no heading", "a foreign heading"]
)
def test_a_heading_replaces_named_columns_in_a_table_that_has_others(first: list[str]) -> None:
    """The tags of the development table stand in another column than those of training."""
    forms = ["draw\tdrew\tV;PST", "go\twent\tV;PST"]
    write_tables({"train": [*first, *forms], "dev": ["lemma\ttags\tform", "see\tV;PST\tsaw"]})
    prepare("--train", "train", "--dev", "dev", "--columns", "source,target,tags")
    assert read_lines("out/dev.src") == ["+V +PST s e e"]
    assert read_lines("out/dev.tgt") == ["s a w"]


@pytest.mark.parametrize(
    ("train", "dev"),
    [
        pytest.param(
            ["lemma\tform", "draw\tdrew", "go\twent"],
            ["forms\tlemmas", "saw\tsee"],
            id="exchanged columns",
        ),
        pytest.param(
            ["draw\tdrew", "go\twent"], ["form\tlemma", "saw\tsee"], id="training has no heading"
        ),
    ],
)
def test_a_heading_with_usual_names_replaces_named_columns(
    train: list[str], dev: list[str]
) -> None:
    write_tables({"train": train, "dev": dev})
    prepare("--train", "train", "--dev", "dev", *AS_NAMED)
    assert read_lines("out/dev.src") == ["s e e"]


def test_a_heading_with_further_columns_replaces_named_columns() -> None:
    write_tables(
        {"train": ["draw\tdrew\t1", "go\twent\t1"], "dev": ["lemma\tcount\tform", "see\t1\tsaw"]}
    )
    prepare("--train", "train", "--dev", "dev", "--columns", "source,target,-")
    assert read_lines("out/dev.src") == ["s e e"]
