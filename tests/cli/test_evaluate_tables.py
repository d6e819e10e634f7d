"""`onmt-entmax evaluate` of predicted tables: figures counted by hand, and how they are printed."""

from pathlib import Path

import pytest

from tests.cli.evaluating import GOLD, Evaluation, run_evaluate
from tests.cli.tables import write_table


def tables(
    folder: Path, gold: tuple[str, ...], predicted: tuple[str, ...]
) -> tuple[Path, str, Path]:
    """Write both tables; return the arguments that evaluate the second."""
    predictions = write_table(folder / "predicted.tsv", *predicted)
    return predictions, "--reference", write_table(folder / "gold.tsv", *gold)


# --- queries with several gold targets ---


@pytest.fixture
def three_queries(tmp_path: Path) -> Evaluation:
    """Predictions for `GOLD`, where `read` has two targets.

    `cat` and the second target of `read` are right; `gnu` should be `n j uː`.
    """
    arguments = tables(tmp_path, GOLD, ("gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d"))
    return run_evaluate(tmp_path, *arguments)


def test_several_gold_targets_are_one_query(three_queries: Evaluation) -> None:
    assert three_queries.content["all"]["queries"] == 3


def test_each_of_several_gold_targets_is_right(three_queries: Evaluation) -> None:
    assert three_queries.content["average"]["accuracy"] == pytest.approx(2 / 3)


def test_the_error_rate_is_that_of_the_nearest_gold_target(
    three_queries: Evaluation,
) -> None:
    edits, phones = 2, 3 + 3 + 3  # those of `gnu`; those of all nearest targets
    error_rate = three_queries.content["average"]["error_rate"]
    assert error_rate == pytest.approx(edits / phones)


def test_queries_with_several_gold_targets_are_counted(three_queries: Evaluation) -> None:
    assert "queries with several gold targets: 1 of 3" in three_queries.printed


def test_named_columns_are_those_of_the_predicted_table(tmp_path: Path) -> None:
    """Otherwise, their heading would name the lemma as the source."""
    heading = "form\tlemma"
    arguments = tables(tmp_path, (heading, "saw\tsee", "ate\teat"), (heading, "saw\tsee", "ate\tx"))
    figures = run_evaluate(tmp_path, *arguments, "--columns", "source,target").content
    assert figures["average"]["accuracy"] == 0.5


def test_the_predicted_table_may_have_other_usual_names_than_the_gold_table(
    tmp_path: Path,
) -> None:
    arguments = tables(tmp_path, ("lemma\tform", "see\tsaw"), ("word\tform", "see\tsaw"))
    assert run_evaluate(tmp_path, *arguments).content["average"]["accuracy"] == 1


# --- what is printed ---


def test_the_unit_of_errors_is_printed(three_queries: Evaluation) -> None:
    assert "target: symbols between ' ' (guessed" in three_queries.printed


def test_figures_are_printed_in_percent(three_queries: Evaluation) -> None:
    """Error rates of words and of phones, since symbols stand between spaces."""
    rows = [line.split() for line in three_queries.printed.splitlines()]
    assert ["language", "queries", "accuracy", "WER", "PER"] in rows
    assert ["average", "3", "66.67", "33.33", "22.22"] in rows


# --- what is equal ---


class TestADividedSymbol:
    """`t s a` is predicted as `ts a`, beside another target, which is right."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        files = tables(tmp_path, gold=("x\tt s a", "y\tb"), predicted=("x\tts a", "y\tb"))
        return (*files, "--separator", "target= ")

    def test_is_wrong(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert run_evaluate(tmp_path, *arguments).content["all"]["accuracy"] == 0.5

    def test_is_two_edits(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        symbols = 3 + 1
        assert run_evaluate(tmp_path, *arguments).content["all"]["error_rate"] == 2 / symbols


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        pytest.param("\u00e4", "a\u0308", id="composed and decomposed letter"),
        pytest.param("a", "a ", id="space at the end"),
        pytest.param("a", "A", id="capital letter"),
    ],
)
def test_targets_are_not_normalised(tmp_path: Path, gold: str, predicted: str) -> None:
    arguments = tables(tmp_path, (f"x\t{gold}",), (f"x\t{predicted}",))
    assert run_evaluate(tmp_path, *arguments).content["all"]["accuracy"] == 0


def test_symbols_are_characters_if_no_space_stands_between_them(tmp_path: Path) -> None:
    arguments = tables(tmp_path, ("x\tab",), ("x\tab",))
    assert run_evaluate(tmp_path, *arguments).content["unit"] == "characters"


# --- headings ---


def test_a_heading_may_name_the_columns_of_a_predicted_table(tmp_path: Path) -> None:
    """The gold table has them in another order, and no heading: `--columns` names them."""
    heading = "pronunciation\tword\tlanguage"
    arguments = tables(tmp_path, ("xx\tcat\tk a t", "yy\tcat\tk"), (heading, "k\tcat\tyy"))
    figures = run_evaluate(tmp_path, *arguments, "--columns", "language,source,target").content
    assert figures["languages"]["yy"]["accuracy"] == 1
