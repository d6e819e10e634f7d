"""`onmt-entmax predict` with a model of several languages, and tags in a column."""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import evaluate, predict
from tests.cli.predicting import predicted
from tests.cli.tables import write_table
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options


@pytest.fixture(scope="module")
def inflection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of inflection with the columns of the shared task of 2023.

    Its forms of `b` with `V;PST`, and of `bb` with `V`, are not the same in both languages.
    """
    source = ("lang=english", "lang=german", "+V", "+PST", *"ab▁")
    options = task_options(["source", "tags", "target"], target_order="right_to_left")
    folder = tmp_path_factory.mktemp("inflection") / "model"
    return write_model(folder, 25, vocabularies_of(source, "ab▁"), end=1, options=options)


def test_an_absent_target_stands_where_training_has_it(
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


# --- languages ---


def test_several_tables_go_into_a_folder_each_in_its_language(
    inflection: Path, tmp_path: Path
) -> None:
    """The name of a table says its language, also by a code."""
    tables = [
        write_table(tmp_path / f"{name}.covered.tst", "b\tV;PST", "ba\tV")
        for name in ("deu", "english")
    ]
    out = tmp_path / "out"
    assert predicted(inflection, *tables, "--output", out) == 0
    transducer = Transducer(inflection)
    forms = {
        name: transducer.predict("b", "V;PST", language).text
        for name, language in (("deu", "german"), ("english", "english"))
    }
    assert forms["deu"] != forms["english"]
    for name, form in forms.items():
        lines = (out / f"{name}.covered.tst").read_text(encoding="utf-8").splitlines()
        assert lines[0] == f"b\tV;PST\t{form}"
    assert {path.name for path in out.iterdir()} == {path.name for path in tables}


def test_languages_may_be_a_column(
    inflection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "x.tsv", "german\tbb\tV", "eng\tbb\tV")
    columns = ("--columns", "language,source,tags")
    assert predicted(inflection, table, *columns) == 0
    transducer = Transducer(inflection)
    forms = [transducer.predict("bb", "V", name).text for name in ("german", "english")]
    assert forms[0] != forms[1]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[3] for line in lines] == forms


def test_a_column_of_languages_needs_no_other_language(inflection: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "x.tsv", "german\tab\tV")
    columns = ("--columns", "language,source,tags")
    assert "leave --language out" in refusal(
        predict.main, [inflection, table, *columns, "--language", "german"]
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        pytest.param(
            "klingon.tst", (), "the model knows no language 'klingon'", id="unknown, by name"
        ),
        pytest.param(
            "test.tsv", (), "no language is named, and the model knows english, german", id="none"
        ),
        pytest.param(
            "german.tst",
            ("--language", "klingon"),
            "no language 'klingon'",
            id="unknown, by option",
        ),
    ],
)
def test_a_language_is_checked_before_anything_is_predicted(
    inflection: Path, tmp_path: Path, name: str, options: tuple[str, ...], message: str
) -> None:
    table = write_table(tmp_path / name, "ab\tV")
    output = tmp_path / "out.tsv"
    assert message in refusal(predict.main, [inflection, table, "--output", output, *options])
    assert not output.exists()


# --- columns ---


class TestColumnsInAnotherOrderThanInTraining:
    """Their tags show them, in `evaluate` too: a tag is neither a word nor a target."""

    NAMED = ("--columns", "source,target,tags")

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        return write_table(tmp_path / "german.tst", "ab\tbb\tV;PST", "ba\tbb\tV")

    @pytest.fixture
    def evaluation(self, table: Path, inflection: Path) -> list[str]:
        """The arguments of an evaluation of the table by itself."""
        return [str(table), "--reference", str(table), "--model", str(inflection)]

    def test_are_refused(self, inflection: Path, table: Path) -> None:
        message = "column 3 has the tags of the model, and not column 2; name the columns"
        assert message in refusal(predict.main, [inflection, table])

    def test_are_refused_by_an_evaluation(self, evaluation: list[str]) -> None:
        message = "column 3 has the tags of the model, and not column 2; name the columns"
        assert message in refusal(evaluate.main, evaluation)

    def test_may_be_named(self, inflection: Path, table: Path) -> None:
        assert predicted(inflection, table, *self.NAMED) == 0

    def test_may_be_named_for_an_evaluation(
        self, evaluation: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_status(evaluate.main, [*evaluation, *self.NAMED]) == 0
        assert "100.00" in capsys.readouterr().out
