"""`onmt-entmax paradigm`: warnings of a lemma that the model may misread, in every format."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.paradigms import Writer, Written
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import vocabularies_of


class Lemma(NamedTuple):
    """A lemma, and what the model warns of in each of its two cells."""

    text: str
    warnings: tuple[str, ...] = ()


READ = Lemma("ab")
UNKNOWN = Lemma("ac", ("unknown character c",))
DECOMPOSED = Lemma(
    "ba\u0308",
    (
        "unknown character U+0308",
        "the lemma is not in Unicode's normal form NFC, in which training has ä: normalise it",
    ),
)

misread_lemma = pytest.mark.parametrize(
    "lemma",
    [pytest.param(UNKNOWN, id="unknown character"), pytest.param(DECOMPOSED, id="normal form")],
)
every_list = pytest.mark.parametrize("kind", ["hunspell", "keyman", "att"])
every_format = pytest.mark.parametrize(
    "kind", ["table", "csv", "json", "html", "hunspell", "keyman", "att"]
)


@pytest.fixture(scope="module")
def umlaut_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose training had ä."""
    vocabularies = vocabularies_of((*VOCABULARIES.source.tokens[2:], "ä"), "abä")
    return write_model(tmp_path_factory.mktemp("umlaut") / "model", 4, vocabularies, end=4)


Write = Callable[[Lemma, str], Written]


@pytest.fixture(scope="module")
def write(umlaut_model: Path, cells_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Writes the paradigm of a lemma in a format."""
    writers = {
        lemma: Writer(umlaut_model, cells_file, tmp_path_factory.mktemp("lemma"), lemma.text)
        for lemma in (READ, UNKNOWN, DECOMPOSED)
    }
    return lambda lemma, kind: writers[lemma].write(kind)


# --- the standard error ---


@every_format
@misread_lemma
def test_warnings_are_printed_with_the_number_of_their_cells(
    write: Write, lemma: Lemma, kind: str
) -> None:
    assert write(lemma, kind).errors.splitlines() == [
        f"warning: {lemma.text}: {warning} (2 of 2 cells)" for warning in lemma.warnings
    ]


@every_format
def test_a_lemma_that_the_model_reads_gives_no_warning(write: Write, kind: str) -> None:
    assert write(READ, kind).errors == ""


# --- what a list says of itself ---


@every_list
@misread_lemma
def test_a_list_says_in_how_many_cells_there_are_warnings(
    write: Write, lemma: Lemma, kind: str
) -> None:
    assert "there are warnings in 2 of 2 cells" in write(lemma, kind).printed


@every_list
def test_a_list_without_warnings_has_no_word_about_them(write: Write, kind: str) -> None:
    assert "warnings" not in write(READ, kind).printed


@every_list
@misread_lemma
def test_a_list_with_warnings_is_not_complete(write: Write, lemma: Lemma, kind: str) -> None:
    assert write(lemma, kind).printed.startswith("incomplete: ")


@pytest.mark.parametrize(
    ("kind", "completeness"),
    [("hunspell", "incomplete"), ("keyman", "incomplete"), ("att", "complete")],
)
def test_a_list_without_warnings_is_complete_if_it_holds_every_form(
    write: Write, kind: str, completeness: str
) -> None:
    """One form is empty, which Hunspell's and Keyman's lists cannot hold."""
    assert write(READ, kind).printed.startswith(f"{completeness}: ")


@pytest.mark.parametrize(("kind", "ending"), [("hunspell", ".aff"), ("keyman", "")])
def test_a_list_has_a_comment_that_says_how_complete_it_is(
    write: Write, kind: str, ending: str
) -> None:
    written = write(UNKNOWN, kind)
    assert written.printed.strip() in "\n".join(written.lines(ending))
