"""The option `target_symbols` of commands, with a model that was trained on two languages."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import find_model, load
from onmt_entmax.cli import export, inflect, paradigm, predict, translate
from tests.commands import succeed
from tests.in_process import Main, exit_status

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


@pytest.fixture(scope="module")
def two_languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained with two languages: x has only a and b in its data, y only c and d."""
    folder = tmp_path_factory.mktemp("two-languages")
    for language, letters in (("x", "ab"), ("y", "cd")):
        lemmas = ["".join(pair) for pair in itertools.product(letters, repeat=2)]
        rows = "".join(f"{lemma}\t{lemma}{letters[0]}\tV\n" for lemma in lemmas)
        for split in ("train", "dev"):
            (folder / f"{language}-{split}").write_text(rows, encoding="utf-8")
    run = folder / "run"
    succeed("onmt_entmax", "prepare", "sigmorphon", "--data", folder, "--out", run)
    small = ("-train_steps", 2, "-rnn_size", 8, "-word_vec_size", 8, "-valid_steps", 2)
    succeed("onmt_entmax", "train", "-config", run / "train.yaml", *small)
    return run / "model"


@pytest.fixture(scope="module")
def exported(two_languages: Path) -> Path:
    """The exported model."""
    folder = two_languages.parent / "exported"
    assert exit_status(export.main, [str(two_languages), str(folder)]) == 0
    return folder


SEEN = {"lang=x": frozenset("ab"), "lang=y": frozenset("cd")}


def test_training_records_the_target_symbols_of_each_language(two_languages: Path) -> None:
    assert load(find_model(two_languages)).vocabularies.target.seen == SEEN


def test_export_keeps_the_recorded_symbols(exported: Path) -> None:
    assert load(exported).vocabularies.target.seen == SEEN


# --- commands that predict -------------------------------------------------------------------

Run = Callable[..., list[list[str]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns the cells of each line it prints."""

    def cells_of(main: Main, *arguments: object) -> list[list[str]]:
        capsys.readouterr()  # what was printed before
        assert exit_status(main, [*map(str, arguments)]) == 0
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    return cells_of


def has_symbols_of_y(outputs: str) -> bool:
    """Return whether outputs have letters that only the language y has."""
    return bool({*"cd"} & {*outputs})


options = pytest.mark.parametrize(
    ("option", "any_symbols"),
    [
        pytest.param((), True, id="default"),
        pytest.param(("--target_symbols", "any"), True, id="any"),
        pytest.param(("--target_symbols", "language"), False, id="language"),
    ],
)
SIZES = ("--n_best", 20, "--beam_size", 20)  # enough for outputs of each letter


def table_of(folder: Path, source: str) -> Path:
    """Write a table with a source of the language x, which is the name of the file."""
    table = folder / "x.tsv"
    table.write_text(f"{source}\t\tV\n", encoding="utf-8")
    return table


@options
def test_predict_excludes_symbols_of_the_other_language(
    exported: Path, tmp_path: Path, run: Run, option: tuple[str, ...], any_symbols: bool
) -> None:
    rows = run(predict.main, exported, table_of(tmp_path, "ab"), *SIZES, *option)
    assert has_symbols_of_y("".join(output for _, output, *_ in rows)) is any_symbols


@options
def test_predict_allows_a_symbol_of_the_source_in_any_case(
    exported: Path, tmp_path: Path, run: Run, option: tuple[str, ...], any_symbols: bool
) -> None:
    """The source is c, a letter of the other language, which has d, too."""
    rows = run(predict.main, exported, table_of(tmp_path, "c"), *SIZES, *option)
    outputs = "".join(output for _, output, *_ in rows)
    assert "c" in outputs
    assert ("d" in outputs) is any_symbols


@options
def test_inflect_excludes_symbols_of_the_other_language(
    exported: Path, run: Run, option: tuple[str, ...], any_symbols: bool
) -> None:
    rows = run(inflect.main, "--model", exported, "x", "ab", "V", *SIZES, *option)
    forms = "".join(form for _, _, _, _, form, *_ in rows)
    assert has_symbols_of_y(forms) is any_symbols


@options
def test_paradigm_excludes_symbols_of_the_other_language(
    exported: Path, run: Run, option: tuple[str, ...], any_symbols: bool
) -> None:
    query = ("--model", exported, "x", "ab", "--format", "json")
    ((text,),) = run(paradigm.main, *query, *option)
    assert has_symbols_of_y("".join(re.findall(r'"form": "(.*?)"', text))) is any_symbols


def test_translate_excludes_the_probability_of_symbols_of_the_other_language(
    exported: Path, tmp_path: Path, run: Run
) -> None:
    source, report = tmp_path / "source", tmp_path / "report"
    source.write_text("lang=x +V a b\n", encoding="utf-8")
    files = ("-src", source, "-output", tmp_path / "output", "-exactness_report", report)

    def excluded(*option: str) -> float:
        """Return the excluded probability that the report says."""
        run(translate.main, "-model", exported, *files, *option)
        return json.loads(report.read_text(encoding="utf-8"))["excluded"]

    assert excluded() == excluded("-target_symbols", "any")
    assert excluded() < excluded("-target_symbols", "language")
