"""`prepare table --hallucinate`: pairs with invented stems are another corpus of the training."""

from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from onmt_entmax.cli.table_configuration import corpus_weights
from tests.cli.preparing import (
    FORMS,
    Printed,
    prepare_rows,
    read_lines,
    write_tables,
    written_options,
)
from tests.in_process import refusal

pytestmark = pytest.mark.usefixtures("working_folder")


# --- as many pairs as asked for ---


@pytest.fixture
def two_pairs(working_folder: Path) -> Printed:
    """What is printed about two pairs, both from walk and walks.

    The other rows have no stem of three letters: draw and drew, go and went.
    """
    return prepare_rows(FORMS, "--hallucinate", 2)


@pytest.mark.usefixtures("two_pairs")
def test_hallucinated_pairs_are_a_corpus_of_the_training() -> None:
    assert written_options()["data"]["hallucinated"] == {
        "path_src": "out/hallucinated.src",
        "path_tgt": "out/hallucinated.tgt",
        "weight": 2,
    }


@pytest.mark.usefixtures("two_pairs")
def test_hallucinated_pairs_have_the_tags_and_ending_of_a_row_and_another_stem() -> None:
    sources = [line.split() for line in read_lines("out/hallucinated.src")]
    targets = [line.split() for line in read_lines("out/hallucinated.tgt")]
    assert [source[:2] for source in sources] == [["+V", "+PRS"]] * 2
    assert targets == [[*source[2:], "s"] for source in sources]


def test_hallucinated_pairs_are_counted(two_pairs: Printed) -> None:
    assert "out/hallucinated.{src,tgt}: 2 pairs, to train on\n" in two_pairs.out


@pytest.mark.parametrize(
    ("rows", "invented", "words_weight", "pairs_weight"),
    [
        pytest.param(100, 300, 1, 3, id="more pairs"),
        pytest.param(10, 1_000, 1, 100, id="as many more as are possible"),
        pytest.param(4_000, 3_000, 4, 3, id="fewer pairs"),
        pytest.param(10_000, 5, 20, 1, id="hardly any pairs"),
    ],
)
def test_hallucinated_pairs_are_read_as_often_as_rows(
    rows: int, invented: int, words_weight: int, pairs_weight: int
) -> None:
    """By these weights, each corpus is read once while the other is."""
    assert corpus_weights(rows, invented) == {"words": words_weight, "hallucinated": pairs_weight}


def test_nearly_as_many_pairs_as_rows_need_no_weights() -> None:
    assert corpus_weights(10_000, 9_926) == {}


# --- none ---


def test_nothing_is_hallucinated_unless_asked() -> None:
    prepare_rows(FORMS)
    assert "hallucinated" not in written_options()["data"]
    assert not Path("out/hallucinated.src").exists()


def test_nothing_can_be_hallucinated_without_a_training() -> None:
    write_tables({"a.dev": FORMS})
    arguments = ["--dev", "a.dev", "--language", "eng", "--out", "out", "--hallucinate", "1"]
    assert "which needs train and dev" in refusal(prepare_sigmorphon.main, arguments)


def test_nothing_can_be_hallucinated_without_a_stem() -> None:
    write_tables({"a.trn": ["ab\tx y"], "a.dev": ["ab\tx y"]})
    arguments = ["--train", "a.trn", "--dev", "a.dev", "--out", "out", "--hallucinate", "1"]
    message = "--hallucinate: no source has 3 symbols in a row"
    assert message in refusal(prepare_table.main, arguments)
    assert not Path("out").exists()
