"""`onmt-entmax evaluate --model`: languages, columns and units are those of the model."""

from pathlib import Path

import pytest

from onmt_entmax.cli import evaluate
from tests.cli.evaluating import run_evaluate
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options, write_phones

# --- languages ---


@pytest.fixture
def german(tmp_path: Path) -> list[str]:
    """The arguments of an evaluation of German, but for the predicted table.

    The model knows English and German by names and codes.
    """
    source = ("lang=german", "lang=english", *"ab")
    vocabularies = vocabularies_of(source, "ab")
    model = write_model(tmp_path / "model", 1, vocabularies, options=task_options())
    gold = write_table(tmp_path / "deu_test.tsv", "a\tb")
    return ["--reference", str(gold), "--model", str(model)]


@pytest.mark.parametrize("name", ["german", "words"])
def test_a_table_of_the_gold_language_or_of_none_is_evaluated(
    german: list[str], tmp_path: Path, name: str
) -> None:
    predicted = write_table(tmp_path / f"{name}.tsv", "a\tb")
    assert run_evaluate(tmp_path, predicted, *german).content["all"]["accuracy"] == 1


def test_a_table_of_another_language_is_refused(german: list[str], tmp_path: Path) -> None:
    message = "eng.tsv: of the language english by its name, and the gold table is of german"
    predicted = write_table(tmp_path / "eng.tsv", "a\tb")
    assert message in refusal(evaluate.main, [predicted, *german])


# --- columns and units ---


@pytest.fixture
def phones(tmp_path: Path) -> list[object]:
    """The arguments of an evaluation of pronunciations with their model."""
    model = write_phones(tmp_path / "model", 3)
    gold = write_table(tmp_path / "gold.tsv", "a\tp", "b\tp a")
    return [gold, "--reference", gold, "--model", model]


def test_columns_and_units_are_those_of_the_model(phones: list[object], tmp_path: Path) -> None:
    figures = run_evaluate(tmp_path, *phones).content
    assert figures["unit"] == "symbols between ' '"
    assert figures["all"]["accuracy"] == 1


def test_the_option_columns_replaces_those_of_the_model(
    phones: list[object], tmp_path: Path
) -> None:
    """Without `--columns`, the sources would be `p a` and `p`, which are not the same."""
    gold = write_table(tmp_path / "turned.tsv", "p a\ta")
    predicted = write_table(tmp_path / "p.tsv", "p\ta")
    *_, model = phones
    options = ["--reference", gold, "--model", model, "--columns", "target,source"]
    assert run_evaluate(tmp_path, predicted, *options).content["all"]["error_rate"] == 1 / 2


def test_the_option_separator_is_refused_beside_a_model(phones: list[object]) -> None:
    options = ["--separator", "target= "]
    assert "the model names the separators" in refusal(evaluate.main, [*phones, *options])
