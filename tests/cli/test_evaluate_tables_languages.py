"""`onmt-entmax evaluate` of tables of several languages: pairs of files, and averages."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluating import run_evaluate
from tests.cli.tables import write_table


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Any]:
    """The figures of German, with one of two right, and of French, with one of one.

    The German tables are named by the language and by its code, and the predicted ones stand in
    another order.
    """
    gold, out = tmp_path / "gold", tmp_path / "out"
    gold.mkdir()
    out.mkdir()
    references = [
        write_table(gold / "german.tst", "a\tV;PST\taa", "b\tV;PST\tbb"),
        write_table(gold / "fra.tst", "a\tV;PST\tcc"),
    ]
    predicted = [
        write_table(out / "fra.covered.tst", "a\tV;PST\tcc"),
        write_table(out / "deu.covered.tst", "b\tV;PST\tb", "a\tV;PST\taa"),
    ]
    columns = ("--columns", "source,tags,target")
    return run_evaluate(tmp_path, *predicted, "--reference", *references, *columns).content


def test_languages_have_figures_of_their_own(figures: dict[str, Any]) -> None:
    languages = figures["languages"]
    accuracies = {name: languages[name]["accuracy"] for name in languages}
    assert accuracies == {"german": 0.5, "fra": 1.0}


def test_every_language_counts_the_same_in_the_average_accuracy(figures: dict[str, Any]) -> None:
    assert figures["average"]["accuracy"] == (0.5 + 1.0) / 2


def test_every_language_counts_the_same_in_the_average_error_rate(figures: dict[str, Any]) -> None:
    german, french = 1 / 4, 0  # one edit of four letters, and none
    assert figures["average"]["error_rate"] == pytest.approx((german + french) / 2)


def test_every_query_counts_the_same_in_the_accuracy_of_all(figures: dict[str, Any]) -> None:
    assert figures["all"]["accuracy"] == pytest.approx((1 + 1) / (2 + 1))
