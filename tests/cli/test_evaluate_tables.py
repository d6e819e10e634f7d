"""`onmt-entmax evaluate` of predicted tables: figures by hand, languages, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli import evaluate
from tests import models
from tests.cli.evaluating import GOLD, evaluated, scores
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.inflection_models import write_model
from tests.string_models import task_options, write_phones


class TestSeveralGoldTargets:
    """`read` has two; `read` and `cat` are right, and `gnu` is not."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        predicted = write_table(tmp_path / "p.tsv", "gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d")
        return predicted, "--reference", gold

    def test_are_one_query(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["queries"] == 3

    def test_are_all_right(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["average"]["accuracy"] == pytest.approx(2 / 3)

    def test_have_the_error_rate_of_the_nearest(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        """`g n uː` for `n j uː`: two edits of nine phones."""
        assert scores(tmp_path, *arguments)["average"]["error_rate"] == pytest.approx(2 / 9)

    def test_are_counted(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "queries with several gold targets: 1 of 3" in capsys.readouterr().out


def test_a_table_of_figures_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d")
    assert evaluated(predicted, "--reference", gold) == 0
    printed = capsys.readouterr().out
    assert "target: symbols between ' ' (guessed" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["language", "queries", "accuracy", "WER", "PER"] in rows
    assert ["average", "3", "66.67", "33.33", "22.22"] in rows


def test_a_divided_symbol_is_another_target(tmp_path: Path) -> None:
    """`ts a` and `t s a` are different strings, and one is two edits from the other."""
    gold = write_table(tmp_path / "gold.tsv", "x\tt s a", "y\tb")
    predicted = write_table(tmp_path / "p.tsv", "x\tts a", "y\tb")
    found = scores(tmp_path, predicted, "--reference", gold, "--separator", "target= ")
    assert found["all"]["accuracy"] == 0.5
    assert found["all"]["error_rate"] == pytest.approx(2 / 4)


def test_nothing_is_normalised(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "x\t\u00e4", "y\ta")
    predicted = write_table(tmp_path / "p.tsv", "x\ta\u0308", "y\ta ")
    found = scores(tmp_path, predicted, "--reference", gold)
    assert found["all"]["accuracy"] == 0
    assert found["unit"] == "characters"


class TestFilesOfSeveralLanguages:
    """They are paired by language, in any order; a code pairs with a name."""

    @pytest.fixture
    def found(self, tmp_path: Path) -> dict[str, Any]:
        for folder in ("gold", "out"):
            (tmp_path / folder).mkdir()
        gold = [
            write_table(tmp_path / "gold/german.tst", "a\tV;PST\taa", "b\tV;PST\tbb"),
            write_table(tmp_path / "gold/fra.tst", "a\tV;PST\tcc"),
        ]
        predicted = [
            write_table(tmp_path / "out/fra.covered.tst", "a\tV;PST\tcc"),
            write_table(tmp_path / "out/deu.covered.tst", "b\tV;PST\tb", "a\tV;PST\taa"),
        ]
        columns = ("--columns", "source,tags,target")
        return scores(tmp_path, *predicted, "--reference", *gold, *columns)

    def test_have_figures_of_their_own(self, found: dict[str, Any]) -> None:
        accuracies = {name: of["accuracy"] for name, of in found["languages"].items()}
        assert accuracies == {"german": 0.5, "fra": 1.0}

    def test_count_the_same_in_the_average(self, found: dict[str, Any]) -> None:
        assert found["average"]["accuracy"] == 0.75
        assert found["average"]["error_rate"] == pytest.approx((1 / 4 + 0) / 2)

    def test_count_by_their_rows_in_all(self, found: dict[str, Any]) -> None:
        assert found["all"]["accuracy"] == pytest.approx(2 / 3)


class TestCertificates:
    """Predictions of five queries, some of which have several outputs; the first counts."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *(f"{n}\tp a" for n in range(5)))
        rows = [
            "0\tp a\t1\t0.9\tonly\t",
            "1\tp a\t1\t0.9\toptimal\t",
            "1\tp\t2\t0.1\toptimal\t",
            "2\tp\t1\t0.6\toptimal\tunknown character x",
            "2\tp a\t2\t0.4\toptimal\tunknown character x",
            "3\t\t\t0\tnone\t",
            "4\tp a\t1\t0.8\tonly\t",
        ]
        return write_table(tmp_path / "p.tsv", *rows), "--reference", gold

    def test_have_their_share_and_accuracy(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        assert scores(tmp_path, *arguments)["all"]["certificates"] == {
            "only": {"share": 0.4, "accuracy": 1.0},
            "optimal": {"share": 0.4, "accuracy": 0.5},
            "none": {"share": 0.2, "accuracy": 0.0},
        }

    def test_first_outputs_count(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["accuracy"] == pytest.approx(3 / 5)

    def test_several_outputs_of_a_query_are_not_warned_of(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "several predictions" not in capsys.readouterr().err

    def test_are_printed_for_all_rows_and_for_no_language(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The tables name no language; `gold` is the name of a file."""
        assert evaluated(*arguments) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        figures = "40.00 100.00 0.00 - 40.00 50.00 20.00 0.00".split()
        assert ["all", *figures] in rows
        assert ["gold", *figures] not in rows


def test_details_below_a_heading_are_found(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tpronunciation", "a\tp a", "b\tp a")
    heading = "word\tpronunciation\trank\tprobability\tcertificate\twarnings"
    predicted = write_table(
        tmp_path / "p.tsv", heading, "a\tp a\t1\t1\tonly\t", "b\tp\t1\t1\tonly\t"
    )
    found = scores(tmp_path, predicted, "--reference", gold)
    assert found["all"]["certificates"] == {"only": {"share": 1.0, "accuracy": 0.5}}


def test_a_gold_query_without_a_prediction_is_wrong_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat\tk æ t")
    found = scores(tmp_path, predicted, "--reference", gold)
    assert found["missing"] == 2
    assert found["all"]["accuracy"] == pytest.approx(1 / 3)
    assert found["all"]["error_rate"] == pytest.approx(6 / 9)
    assert "gold queries without a prediction: 2 of 3" in capsys.readouterr().err


def test_languages_without_any_prediction_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb", "c\td") for name in ("xx", "yy", "zz")]
    (tmp_path / "out").mkdir()
    predicted = [write_table(tmp_path / "out/yy.tsv", "a\tb")]
    assert evaluated(*predicted, "--reference", *gold) == 0
    said = capsys.readouterr().err
    assert "gold queries without a prediction: 5 of 6 (all of xx, zz); they count as wrong" in said


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param(("cat\t", "gnu\tn"), 1, id="an empty target"),
        pytest.param(("cat\t\t\t0\tnone\t", "gnu\t\t\t0\tnone\t"), 2, id="no output at all"),
    ],
)
def test_empty_predictions_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: tuple[str, ...], count: int
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    assert evaluated(write_table(tmp_path / "p.tsv", *rows), "--reference", gold) == 0
    assert f"warning: empty predictions: {count} of 2" in capsys.readouterr().err


def test_a_heading_names_other_columns_than_those_of_the_gold_table(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "xx\tcat\tk a t", "yy\tcat\tk")
    predicted = write_table(tmp_path / "p.tsv", "pronunciation\tword\tlanguage", "k\tcat\tyy")
    columns = ("--columns", "language,source,target")
    found = scores(tmp_path, predicted, "--reference", gold, *columns)
    assert found["languages"]["yy"]["accuracy"] == 1


def test_several_predictions_of_a_query_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\tk æ t", "cat\tk a t", "read\tɹ ɛ d", "read\tɹ ɛ d", "gnu\tn uː")
    found = scores(tmp_path, write_table(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert found["all"]["accuracy"] == pytest.approx(2 / 3)
    assert "several predictions, of which the first counts: 1" in capsys.readouterr().err


def test_a_table_without_any_target_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\t", "read\t", "gnu\t")
    found = scores(tmp_path, write_table(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert found["all"]["accuracy"] == 0
    assert "p.tsv: all targets are empty: are they predictions?" in capsys.readouterr().err


COLUMNS = ("--columns", "source,target")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        pytest.param(
            ("dog\td ɒ ɡ",),
            COLUMNS,
            "no gold row has this query: dog (all); the columns are read as source, target",
            id="another query",
        ),
        pytest.param(
            ("cat\tk æ t", "gnu\tn", "cat"),
            COLUMNS,
            "p.tsv: 1 row cannot be read: line 3: expected 2 columns",
            id="a bad row",
        ),
        pytest.param(("cat",), (), "no targets, hence no predictions", id="no targets"),
        pytest.param(
            ("cat\tk",),
            (*COLUMNS, "--source", "x"),
            "--source goes with files of tokens",
            id="source of tokens",
        ),
        pytest.param(
            ("cat\tk",),
            (*COLUMNS, "--nbest", 2),
            "--nbest goes with files of tokens",
            id="n-best outputs of tokens",
        ),
        pytest.param(
            ("cat\tk",),
            ("--columns", "source"),
            "--columns: target is missing",
            id="columns without a target",
        ),
        pytest.param(
            ("cat\tk",),
            (*COLUMNS, "--separator", "form"),
            "--separator 'form': expected source=",
            id="a separator of nothing",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, rows: tuple[str, ...], options: tuple[object, ...], message: str
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", *rows)
    assert message in refusal(evaluate.main, [predicted, "--reference", gold, *options])


def test_a_gold_table_without_targets_is_refused(tmp_path: Path) -> None:
    gold = write_table(tmp_path / "gold.tsv", "word\tfeatures", "a\tV", "b\tN")
    predicted = write_table(tmp_path / "p.tsv", "a\tV\tb")
    assert "no targets, so nothing is right" in refusal(
        evaluate.main, [predicted, "--reference", gold]
    )


def test_a_language_without_a_gold_table_is_refused(tmp_path: Path) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb") for name in ("xx", "yy")]
    predicted = write_table(tmp_path / "zz_test.covered.tsv", "a\tb")
    message = "of the language zz by its name, of which there is no gold table"
    assert message in refusal(evaluate.main, [predicted, "--reference", *gold])


class TestASingleTable:
    """A model knows English and German by their names and codes; the gold table is of German."""

    @pytest.fixture
    def words(self, tmp_path: Path) -> list[str]:
        """The arguments of an evaluation, but for the predicted table."""
        source = ("lang=german", "lang=english", *"ab")
        vocabularies = models.words(source, "ab")
        model = write_model(tmp_path / "model", 1, vocabularies, options=task_options())
        gold = write_table(tmp_path / "deu_test.tsv", "a\tb")
        return ["--reference", str(gold), "--model", str(model)]

    @pytest.mark.parametrize("name", ["german", "words"])
    def test_of_the_language_or_of_none_is_evaluated(
        self, words: list[str], tmp_path: Path, name: str
    ) -> None:
        assert evaluated(write_table(tmp_path / f"{name}.tsv", "a\tb"), *words) == 0

    def test_of_another_language_is_refused(self, words: list[str], tmp_path: Path) -> None:
        message = "eng.tsv: of the language english by its name, and the gold table is of german"
        predicted = write_table(tmp_path / "eng.tsv", "a\tb")
        assert message in refusal(evaluate.main, [predicted, *words])


def test_a_model_needs_predicted_tables(tmp_path: Path) -> None:
    assert "--model goes with predicted tables" in refusal(evaluate.main, ["--model", tmp_path])


def test_something_to_evaluate_is_needed() -> None:
    assert "--source, --reference, --predictions, or predicted tables" in refusal(evaluate.main, [])


class TestColumnsAndUnitsOfAModel:
    @pytest.fixture
    def words(self, tmp_path: Path) -> list[object]:
        model = write_phones(tmp_path / "model", 3)
        gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp a")
        return [gold, "--reference", gold, "--model", model]

    def test_are_taken(self, words: list[object], tmp_path: Path) -> None:
        found = scores(tmp_path, *words)
        assert found["unit"] == "symbols between ' '"
        assert found["all"]["accuracy"] == 1

    def test_are_not_given_as_options(self, words: list[object]) -> None:
        message = "the model says so"
        assert message in refusal(evaluate.main, [*words, "--separator", "target= "])
