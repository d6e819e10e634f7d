"""`prepare table --hallucinate`: pairs with invented stems are another corpus of the training."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from onmt_entmax.cli.table_configuration import corpus_weights
from onmt_entmax.train import timing
from tests.cli.preparing import (
    FORMS,
    Printed,
    prepare,
    read_lines,
    write_tables,
    written_options,
)
from tests.in_process import refusal

pytestmark = pytest.mark.usefixtures("working_folder")


def prepare_rows(rows: Sequence[str], *options: object) -> Printed:
    """Prepare a table, to train on and to validate with."""
    write_tables({"a.trn": rows, "a.dev": rows})
    return prepare("--train", "a.trn", "--dev", "a.dev", *options)


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
    """The smaller corpus is not repeated while the larger one is read."""
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


# --- as a plan for a time decides ---


class ConstantStopwatch:
    """A machine that trains every network on a hundred pairs a second."""

    examples = 1000  # of the training data
    development_pairs = 100

    def __init__(self, *arguments: object) -> None:
        pass

    def training_speeds(self, networks: Sequence[object], seconds: float) -> list[float]:
        return [100.0] * len(networks)

    def validation_speeds(self, *arguments: object) -> tuple[float, float]:
        return 3000.0, 400.0


@pytest.fixture
def constant_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that makes 10 passes over the rows in two minutes, and not in 1.5.

    At 100 pairs a second, 120 seconds are 12 passes over the 1000 examples, and 90 are 9. The
    validations take some seconds of either.
    """
    monkeypatch.setattr(timing, "Stopwatch", ConstantStopwatch)


# A plan hallucinates for words that change at their ends, of which each has four rows or more.
ENDINGS = [f"{stem}en\tV;{n}\t{stem}te" for stem in ("schnarch", "versuch") for n in range(4)]
# Words that change inside have too little in their stem, and a row of a word is too few.
VOWELS = [f"{a}en\tV;{n}\t{b}" for a, b in (("trink", "trank"), ("lüg", "log")) for n in range(4)]
MANY_WORDS = [f"schnarch{letter}en\tV;PST\tschnarch{letter}te" for letter in "abcdefgh"]


@pytest.mark.usefixtures("constant_speed")
@pytest.mark.parametrize(
    ("rows", "options", "pairs"),
    [
        pytest.param(ENDINGS, "--minutes 2", len(ENDINGS), id="many passes"),
        pytest.param(
            MANY_WORDS, "--minutes 1.5 --hallucinate 2", 2 * len(MANY_WORDS), id="an option"
        ),
    ],
)
def test_a_plan_of_many_passes_or_an_option_hallucinates(
    rows: list[str], options: str, pairs: int
) -> None:
    prepare_rows(rows, *options.split())
    assert "hallucinated" in written_options()["data"]
    assert len(read_lines("out/hallucinated.src")) == pairs


@pytest.mark.usefixtures("constant_speed")
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param(ENDINGS, "--minutes 1.5", id="few passes"),
        pytest.param(VOWELS, "--minutes 2", id="words that change inside"),
        pytest.param(MANY_WORDS, "--minutes 2", id="a row of a word"),
        pytest.param(ENDINGS, "--minutes 2 --hallucinate 0", id="unwanted"),
    ],
)
def test_other_plans_do_not_hallucinate(rows: list[str], options: str) -> None:
    prepare_rows(rows, *options.split())
    assert "hallucinated" not in written_options()["data"]
    assert not Path("out/hallucinated.src").exists()


@pytest.mark.usefixtures("constant_speed")
@pytest.mark.parametrize(("copies", "dropout"), [(0, [0.1]), (1, [0.3])])
def test_the_dropout_of_a_plan_is_larger_with_the_pairs_of_an_option(
    copies: int, dropout: list[float]
) -> None:
    """Of nine passes."""
    prepare_rows(MANY_WORDS, "--minutes", 1.5, "--hallucinate", copies)
    assert written_options()["dropout"] == dropout


@pytest.mark.usefixtures("constant_speed")
def test_a_plan_says_why_it_hallucinates() -> None:
    printed = prepare_rows(ENDINGS, "--minutes", 2)
    reason = "Of these rows, 8 are hallucinated, since there are at least 10 passes without"
    assert reason in printed.errors
    assert f"# {reason}" in Path("out/train.yaml").read_text("utf-8")
