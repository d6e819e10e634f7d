"""`onmt-entmax evaluate` of predicted tables: figures counted by hand, and how they are printed."""

from pathlib import Path

import pytest

from tests.cli.evaluating import GOLD, Evaluation, run_evaluate, table_arguments
from tests.cli.tables import write_table

# --- queries with several gold targets ---


@pytest.fixture
def three_queries(tmp_path: Path) -> Evaluation:
    """Predictions for `GOLD`, where `read` has two targets.

    `cat` and the second target of `read` are right; `gnu` should be `n j uː`.
    """
    arguments = table_arguments(tmp_path, GOLD, ("gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d"))
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
    arguments = table_arguments(
        tmp_path, (heading, "saw\tsee", "ate\teat"), (heading, "saw\tsee", "ate\tx")
    )
    figures = run_evaluate(tmp_path, *arguments, "--columns", "source,target").content
    assert figures["average"]["accuracy"] == 0.5


def test_the_predicted_table_may_have_other_usual_names_than_the_gold_table(
    tmp_path: Path,
) -> None:
    arguments = table_arguments(tmp_path, ("lemma\tform", "see\tsaw"), ("word\tform", "see\tsaw"))
    assert run_evaluate(tmp_path, *arguments).content["average"]["accuracy"] == 1


# --- what is printed ---


def test_the_unit_of_errors_is_printed(three_queries: Evaluation) -> None:
    assert "target: symbols between ' ' (guessed" in three_queries.printed


def test_figures_are_printed_in_percent(three_queries: Evaluation) -> None:
    """Error rates of words and of phones, since symbols stand between spaces."""
    rows = [line.split() for line in three_queries.printed.splitlines()]
    assert ["language", "queries", "accuracy", "WER", "PER"] in rows
    assert ["average", "3", "66.67", "33.33", "22.22"] in rows


# --- headings ---


def test_a_heading_may_name_the_columns_of_a_predicted_table(tmp_path: Path) -> None:
    """The gold table has them in another order, and no heading: `--columns` names them."""
    heading = "pronunciation\tword\tlanguage"
    arguments = table_arguments(tmp_path, ("xx\tcat\tk a t", "yy\tcat\tk"), (heading, "k\tcat\tyy"))
    figures = run_evaluate(tmp_path, *arguments, "--columns", "language,source,target").content
    assert figures["languages"]["yy"]["accuracy"] == 1


@pytest.mark.parametrize("options", [[], ["--columns", "source,target"]], ids=["guessed", "named"])
def test_an_unusual_heading_of_all_gold_tables_is_no_query(
    tmp_path: Path, options: list[str]
) -> None:
    """Without a model, only the other gold table shows that it is a heading."""
    heading = "Wort\tAussprache"
    gold = [
        write_table(tmp_path / "deu.gold", heading, "Haus\thaʊs", "Maus\tmaʊs"),
        write_table(tmp_path / "bar.gold", heading, "Laus\tlaʊs", "aus\taʊs"),
    ]
    predicted = [
        write_table(tmp_path / "deu.tsv", heading, "Haus\thaʊs", "Maus\tx"),
        write_table(tmp_path / "bar.tsv", heading, "Laus\tlaʊs", "aus\tx"),
    ]
    evaluation = run_evaluate(tmp_path, *predicted, "--reference", *gold, *options)
    assert evaluation.content["all"]["queries"] == 4
    assert evaluation.content["all"]["accuracy"] == 0.5
