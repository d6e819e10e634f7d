"""`onmt-entmax evaluate` of predicted tables: what is warned of and what is refused."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import GOLD, evaluated, scores
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options, write_phones

# --- warnings ---


def test_a_gold_query_without_a_prediction_is_wrong_and_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat\tk æ t")
    figures = scores(tmp_path, predicted, "--reference", gold)
    assert figures["missing"] == 2
    assert figures["all"]["accuracy"] == pytest.approx(1 / 3)
    assert figures["all"]["error_rate"] == pytest.approx(6 / 9)
    assert "gold queries without a prediction: 2 of 3" in capsys.readouterr().err


def test_languages_without_any_prediction_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb", "c\td") for name in ("xx", "yy", "zz")]
    (tmp_path / "out").mkdir()
    predicted = [write_table(tmp_path / "out/yy.tsv", "a\tb")]
    assert evaluated(*predicted, "--reference", *gold) == 0
    warning = "gold queries without a prediction: 5 of 6 (all of xx, zz); they count as wrong"
    assert warning in capsys.readouterr().err


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


def test_several_predictions_of_a_query_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\tk æ t", "cat\tk a t", "read\tɹ ɛ d", "read\tɹ ɛ d", "gnu\tn uː")
    figures = scores(tmp_path, write_table(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert figures["all"]["accuracy"] == pytest.approx(2 / 3)
    assert "several predictions, of which the first counts: 1" in capsys.readouterr().err


def test_a_table_without_any_target_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\t", "read\t", "gnu\t")
    figures = scores(tmp_path, write_table(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert figures["all"]["accuracy"] == 0
    assert "p.tsv: all targets are empty: are they predictions?" in capsys.readouterr().err


# --- refusals ---


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
            ("cat\tk\t1\t1\tonly\t", "gnu\tn\t1\t1.5\tonly\t"),
            COLUMNS,
            "p.tsv:2: '1.5' is no probability from 0 to 1",
            id="no probability",
        ),
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


def test_a_model_needs_predicted_tables(tmp_path: Path) -> None:
    assert "--model goes with predicted tables" in refusal(evaluate.main, ["--model", tmp_path])


def test_something_to_evaluate_is_needed() -> None:
    assert "--source, --reference, --predictions, or predicted tables" in refusal(evaluate.main, [])


# --- a model, which knows languages, columns and units ---


class TestASingleTable:
    """The model knows English and German by names and codes; the gold table is of German."""

    @pytest.fixture
    def words(self, tmp_path: Path) -> list[str]:
        """The arguments of an evaluation, but for the predicted table."""
        source = ("lang=german", "lang=english", *"ab")
        vocabularies = vocabularies_of(source, "ab")
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


class TestColumnsAndUnitsOfAModel:
    @pytest.fixture
    def words(self, tmp_path: Path) -> list[object]:
        model = write_phones(tmp_path / "model", 3)
        gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp a")
        return [gold, "--reference", gold, "--model", model]

    def test_are_taken(self, words: list[object], tmp_path: Path) -> None:
        figures = scores(tmp_path, *words)
        assert figures["unit"] == "symbols between ' '"
        assert figures["all"]["accuracy"] == 1

    def test_are_those_of_the_option_columns_if_it_is_given(
        self, words: list[object], tmp_path: Path
    ) -> None:
        """Without `--columns`, the sources would be `p a` and `p`, which are not the same."""
        gold = write_table(tmp_path / "turned.tsv", "p a\ta")
        predicted = write_table(tmp_path / "p.tsv", "p\ta")
        *_, model = words
        options = ["--reference", gold, "--model", model, "--columns", "target,source"]
        assert scores(tmp_path, predicted, *options)["all"]["error_rate"] == 1 / 2

    def test_exclude_the_option_separator(self, words: list[object]) -> None:
        options = ["--separator", "target= "]
        assert "the model says so" in refusal(evaluate.main, [*words, *options])
