"""`onmt-entmax evaluate --against`: two sets of predicted tables on the same gold rows."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import GOLD, Evaluation, run_evaluate
from tests.cli.tables import write_table
from tests.in_process import refusal

Tables = dict[str, list[Path]]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Gold tables of two languages, and two predictions of each, in other orders of the rows."""
    contents = {
        "gold": {"xx": [*GOLD, "dog\td ɒ ɡ"], "yy": ["cat\tk a"]},
        # In xx, cat, read and dog are right.
        "ours": {"xx": ["cat\tk æ t", "read\tɹ ɛ d", "dog\td ɒ ɡ", "gnu\tn"], "yy": ["cat\tk"]},
        # In xx, only read is right, by its other target; in yy, cat is.
        "theirs": {
            "xx": ["gnu\tn u", "read\tɹ iː d", "dog\td", "cat\tk"],
            "yy": ["cat\tk a"],
        },
    }
    for name, files in contents.items():
        (tmp_path / name).mkdir()
        for language, rows in files.items():
            write_table(tmp_path / name / f"{language}.tsv", *rows)
    return {name: sorted((tmp_path / name).iterdir()) for name in contents}


def compared(tables: Tables) -> list[object]:
    """Return the arguments that compare both sides."""
    return [*tables["ours"], "--reference", *tables["gold"], "--against", *tables["theirs"]]


@pytest.fixture
def evaluation(tables: Tables, tmp_path: Path) -> Evaluation:
    """The comparison of both sides."""
    return run_evaluate(tmp_path, *compared(tables), "--separator", "target= ")


def test_queries_that_one_side_alone_has_right_are_counted(evaluation: Evaluation) -> None:
    """Of 2 ** 2 outcomes for two queries, two are as one-sided as that of xx, so p is 0.5."""
    assert evaluation.content["against"] == {
        "xx": {"won": 2, "lost": 0, "p": 0.5},
        "yy": {"won": 0, "lost": 1, "p": 1.0},
        "all": {"won": 2, "lost": 1, "p": 1.0},
    }


def test_other_figures_are_those_of_the_first_side(evaluation: Evaluation) -> None:
    assert evaluation.content["all"]["accuracy"] == 3 / 5


def test_a_comparison_is_printed_for_each_language(evaluation: Evaluation, tmp_path: Path) -> None:
    assert evaluation.comparisons == [
        ["language", "only this right", f"only {tmp_path / 'theirs'}", "p"],
        ["xx", "2", "0", "0.5000"],
        ["yy", "0", "1", "1.0000"],
        ["all", "2", "1", "1.0000"],
    ]


@pytest.mark.parametrize(
    ("side", "other", "missing"), [("ours", "theirs", "gnu"), ("theirs", "ours", "cat")]
)
def test_a_side_that_lacks_a_query_is_refused(
    tables: Tables, tmp_path: Path, side: str, other: str, missing: str
) -> None:
    (first, _) = tables[side]
    write_table(first, *first.read_text(encoding="utf-8").splitlines()[:3])  # without its last row
    line = refusal(evaluate.main, [*compared(tables), "--json", tmp_path / "scores.json"])
    assert f"{tmp_path / side}: has no prediction for 1 of 5 rows of {tmp_path / other}" in line
    assert f"such as {missing} (xx); --against compares predictions of the same rows" in line
    assert not (tmp_path / "scores.json").exists()


def test_a_query_that_both_lack_is_a_tie(tables: Tables, tmp_path: Path) -> None:
    """Both sides have the gold table of yy, and no prediction for the four queries of xx."""
    gold_of_yy = tables["gold"][1]
    sides = (gold_of_yy, "--reference", *tables["gold"], "--against", gold_of_yy)
    figures = run_evaluate(tmp_path, *sides).content
    assert figures["missing"] == 4
    assert figures["against"]["all"] == {"won": 0, "lost": 0, "p": 1.0}
