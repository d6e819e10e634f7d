"""Columns of the tables that `predict` and `evaluate` read with a model of inflection.

The training of the model had a lemma, its tags and the form, in this order.
"""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import evaluate, predict
from tests.cli.evaluating import run_evaluate
from tests.cli.predicting import predicted, write_model_of_2023
from tests.cli.tables import write_table
from tests.in_process import refusal


@pytest.fixture(scope="module")
def inflection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_of_2023(tmp_path_factory.mktemp("inflection") / "model")


def test_predicted_forms_stand_in_the_column_where_training_had_forms(
    inflection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "german.covered.tst", "lemma\ttags", "ab\tV;PST", "ba\tV")
    assert predicted(inflection, table) == 0
    transducer = Transducer(inflection)
    past = transducer.predict("ab", "V;PST", "german").text
    verb = transducer.predict("ba", "V", "german").text
    assert capsys.readouterr().out.splitlines() == [
        "lemma\ttags\ttarget",
        f"ab\tV;PST\t{past}",
        f"ba\tV\t{verb}",
    ]


class TestTagsBehindTheForm:
    """A table with a form in column 2 and tags in column 3 is read if its columns are named.

    The tags that the model knows show that the columns are not those of its training.
    """

    NAMED = ("--columns", "source,target,tags")
    MESSAGE = "column 3 has the tags of training, and not column 2; name the columns"

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        return write_table(tmp_path / "german.tst", "ab\tbb\tV;PST", "ba\tbb\tV")

    @pytest.fixture
    def evaluation(self, table: Path, inflection: Path) -> list[object]:
        """The arguments of an evaluation in which one of two forms of the table is right."""
        gold = write_table(table.with_name("german.gold"), "ab\tbb\tV;PST", "ba\ta\tV")
        return [table, "--reference", gold, "--model", inflection]

    def test_are_refused(self, inflection: Path, table: Path) -> None:
        assert self.MESSAGE in refusal(predict.main, [inflection, table])

    def test_are_refused_by_an_evaluation(self, evaluation: list[object]) -> None:
        assert self.MESSAGE in refusal(evaluate.main, evaluation)

    def test_are_read_by_name(
        self, inflection: Path, table: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The predicted form replaces that of the table."""
        assert predicted(inflection, table, *self.NAMED) == 0
        verb = Transducer(inflection).predict("ba", "V", "german").text
        assert capsys.readouterr().out.splitlines()[1] == f"ba\t{verb}\tV"

    def test_are_read_by_name_in_an_evaluation(
        self, evaluation: list[object], tmp_path: Path
    ) -> None:
        figures = run_evaluate(tmp_path, *evaluation, *self.NAMED).content
        assert figures["languages"]["german"]["accuracy"] == 0.5
