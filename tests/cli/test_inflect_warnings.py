"""`onmt-entmax inflect`: warnings in the rows and on the standard error."""

from pathlib import Path

import pytest

from onmt_entmax.cli import inflect
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from tests.cli.inflecting import rows_of, type_lines
from tests.in_process import exit_status
from tests.inflection_models import VOCABULARIES, write_cells, write_model

NO_B = "not seen in training for german: 'b'"


def warnings_of(printed: str) -> list[str]:
    """Return the warnings of printed rows."""
    return [row.warnings for row in rows_of(printed)]


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model whose training saw no b in German."""
    seen = {"lang=german": frozenset({"+V", "a"}), "lang=english": frozenset({"+V", "a", "b"})}
    source = Vocabulary(VOCABULARIES.source.tokens, seen)
    vocabularies = Vocabularies(source, VOCABULARIES.target)
    return str(write_model(tmp_path / "model", 3, vocabularies))


def test_a_query_without_a_warning_prints_nothing_on_the_standard_error(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(inflect.main, ["english", "ab", "V", "--model", model]) == 0
    captured = capsys.readouterr()
    assert warnings_of(captured.out) == [""]
    assert captured.err == ""


def test_the_warning_of_a_query_is_printed(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(inflect.main, ["german", "bab", "V", "--model", model]) == 0
    captured = capsys.readouterr()
    assert warnings_of(captured.out) == [f"{NO_B} (2)"]
    assert captured.err == f"warning: {NO_B} (2)\n"


def test_several_queries_print_their_first_warning_and_a_count(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch, "german ab V\n" * 2)
    assert exit_status(inflect.main, ["--model", model]) == 0
    captured = capsys.readouterr()
    assert warnings_of(captured.out) == [NO_B, NO_B]
    assert captured.err == f"warning: ab: {NO_B} (words with warnings: 2 of 2)\n"


# --- tags that no training source has together, or that a shell cut at a semicolon ---


def errors_with_cells(
    folder: Path,
    cells: str,
    tags: str,
    capsys: pytest.CaptureFixture[str],
    *,
    language: str = "german",
) -> str:
    """Inflect a German word with a model that records cells of training.

    Args:
        folder: receives the model.
        cells: the content of its file of cells.
        tags: tags of the form.
        capsys: has what is printed.
        language: the name or the code of German.

    Returns:
        What is printed on the standard error.
    """
    model = write_model(folder / "model", seed=22)
    write_cells(model, cells)
    assert exit_status(inflect.main, [language, "ab", tags, "--model", str(model)]) == 0
    return capsys.readouterr().err


@pytest.mark.parametrize("language", ["german", "deu"], ids=["by its name", "by its code"])
def test_tags_that_a_shell_cut_give_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    cells = "german\tV;PST\t3\n"
    assert errors_with_cells(tmp_path, cells, "V", capsys, language=language) == (
        "warning: no training source of german has the tag V alone; "
        'a shell needs quotes around tags, such as "V;PST"\n'
    )


@pytest.mark.parametrize(
    ("cells", "tags"),
    [
        pytest.param("german\tV;PST\t3\ngerman\tV\t1\n", "V", id="a cell"),
        pytest.param("german\tV;PST\t3\n", "V;PST", id="quoted tags"),
        pytest.param("english\tV;PST\t3\n", "V", id="cells of another language"),
        pytest.param("damaged\n", "V", id="a damaged list of cells"),
    ],
)
def test_tags_of_training_give_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: str, tags: str
) -> None:
    assert errors_with_cells(tmp_path, cells, tags, capsys) == ""


@pytest.mark.parametrize(
    ("cells", "is_warned"),
    [
        pytest.param("german\tV;SG\t3\ngerman\tN;PST\t1\n", True, id="never together"),
        pytest.param("german\tV;PST;SG\t3\n", True, id="together with another tag"),
        pytest.param("german\tV;SG\t3\nenglish\tV;PST\t1\n", False, id="an unknown tag"),
    ],
)
def test_known_tags_that_no_training_source_has_together_give_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: str, is_warned: bool
) -> None:
    warning = "warning: no training source of german has exactly the tags V;PST\n"
    assert errors_with_cells(tmp_path, cells, "V;PST", capsys) == (warning if is_warned else "")
