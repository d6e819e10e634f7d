"""`onmt-entmax evaluate`: predicted tables and options that it refuses."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import GOLD
from tests.cli.tables import write_table
from tests.in_process import refusal

# --- tables ---


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param(
            ["dog\td ɒ ɡ"],
            "no gold row has this query: dog (all); the columns are read as source, target",
            id="another query",
        ),
        pytest.param(
            ["cat\tk æ t", "gnu\tn", "cat"],
            "p.tsv: 1 row cannot be read: line 3: expected 2 columns",
            id="a bad row",
        ),
        pytest.param(
            ["cat\tk\t1\t1\tonly\t", "gnu\tn\t1\t1.5\tonly\t"],
            "p.tsv:2: '1.5' is no probability from 0 to 1",
            id="no probability",
        ),
    ],
)
def test_a_predicted_table_that_does_not_fit_the_gold_table_is_refused(
    tmp_path: Path, rows: list[str], message: str
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", *rows)
    arguments = [predicted, "--reference", gold, "--columns", "source,target"]
    assert message in refusal(evaluate.main, arguments)


def test_a_table_without_targets_is_not_a_prediction(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat")
    message = "no targets, hence no predictions"
    assert message in refusal(evaluate.main, [predicted, "--reference", gold])


def test_a_gold_table_without_targets_is_refused(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tfeatures", "a\tV", "b\tN")
    predicted = write_table(tmp_path / "p.tsv", "a\tV\tb")
    message = "no targets, so nothing is right"
    assert message in refusal(evaluate.main, [predicted, "--reference", gold])


def test_a_language_without_a_gold_table_is_refused(tmp_path: Path) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb") for name in ("xx", "yy")]
    predicted = write_table(tmp_path / "zz_test.covered.tsv", "a\tb")
    message = "of the language zz by its name, of which there is no gold table"
    assert message in refusal(evaluate.main, [predicted, "--reference", *gold])


# --- options ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param("--source x", "--source goes with files of tokens", id="source of tokens"),
        pytest.param("--nbest 2", "--nbest goes with files of tokens", id="n-best lists of tokens"),
        pytest.param(
            "--columns source", "--columns: target is missing", id="columns without a target"
        ),
        pytest.param(
            "--separator form", "--separator 'form': expected source=", id="separator of nothing"
        ),
    ],
)
def test_an_option_that_does_not_go_with_tables_is_refused(
    tmp_path: Path, options: str, message: str
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat\tk")
    assert message in refusal(evaluate.main, [predicted, "--reference", gold, *options.split()])


def test_a_model_needs_predicted_tables(tmp_path: Path) -> None:
    assert "--model goes with predicted tables" in refusal(evaluate.main, ["--model", tmp_path])


def test_a_call_without_predictions_is_refused() -> None:
    assert "--source, --reference, --predictions, or predicted tables" in refusal(evaluate.main, [])


def test_a_predicted_table_from_a_pipe_is_refused(tmp_path: Path) -> None:
    """Its first rows would be lost."""
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    message = "/dev/stdin: is a pipe or a device, but is read more than once"
    assert message in refusal(evaluate.main, ["/dev/stdin", "--reference", gold])
