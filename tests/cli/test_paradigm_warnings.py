"""`onmt-entmax paradigm`: warnings of a lemma that the model may misread, in every format."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.paradigms import Writer, Written
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import vocabularies_of

KINDS = ("table", "csv", "json", "html", "hunspell", "keyman", "att")
LISTS = ("hunspell", "keyman", "att")


class Lemma(NamedTuple):
    """A lemma, and what the model warns of in each of its cells."""

    text: str
    warnings: tuple[str, ...] = ()

    @property
    def printed_warnings(self) -> list[str]:
        """The lines of the standard error."""
        return [f"warning: {self.text}: {warning} (2 of 2 cells)" for warning in self.warnings]


READ = Lemma("ab")
UNKNOWN = Lemma("ac", ("unknown character c",))
DECOMPOSED = Lemma(
    "ba\u0308",
    (
        "unknown character U+0308",
        "the lemma is not in Unicode's normal form NFC, in which training has ä: normalise it",
    ),
)


@pytest.fixture(scope="module")
def umlaut_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose training had ä."""
    vocabularies = vocabularies_of((*VOCABULARIES.source.tokens[2:], "ä"), "abä")
    return write_model(tmp_path_factory.mktemp("umlaut") / "model", 4, vocabularies, end=4)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The format."""
    kind: str = request.param
    return kind


WITHOUT_WARNINGS = pytest.param(READ, id="none")
WITH_WARNINGS = [
    pytest.param(UNKNOWN, id="unknown character"),
    pytest.param(DECOMPOSED, id="normal form"),
]


@pytest.fixture(params=[WITHOUT_WARNINGS, *WITH_WARNINGS])
def lemma(request: pytest.FixtureRequest) -> Lemma:
    lemma: Lemma = request.param
    return lemma


@pytest.fixture
def written(
    kind: str, lemma: Lemma, umlaut_model: Path, cells_file: Path, tmp_path: Path
) -> Written:
    """The paradigm of the lemma in the format."""
    return Writer(umlaut_model, cells_file, tmp_path / "out", (lemma.text,)).write(kind)


def test_a_lemma_that_the_model_misreads_is_warned_of_in_every_format(
    lemma: Lemma, written: Written
) -> None:
    assert written.errors.splitlines() == lemma.printed_warnings


@pytest.mark.parametrize("kind", LISTS, indirect=True)
def test_a_list_says_in_how_many_cells_there_are_warnings(lemma: Lemma, written: Written) -> None:
    has_note = "there are warnings in 2 of 2 cells" in written.printed
    assert has_note == bool(lemma.warnings)


@pytest.mark.parametrize("kind", LISTS, indirect=True)
@pytest.mark.parametrize("lemma", WITH_WARNINGS, indirect=True)
def test_a_list_with_warnings_is_not_complete(written: Written) -> None:
    assert not written.printed.startswith("complete: ")


@pytest.mark.parametrize("lemma", [WITHOUT_WARNINGS], indirect=True)
@pytest.mark.parametrize("kind", LISTS, indirect=True)
def test_a_list_without_warnings_is_complete_if_it_holds_every_form(
    kind: str, written: Written
) -> None:
    """One form is empty, which Hunspell's and Keyman's lists cannot hold."""
    assert written.printed.startswith("complete: ") == (kind == "att")


@pytest.mark.parametrize(
    ("kind", "ending"), [("hunspell", ".aff"), ("keyman", "")], indirect=["kind"]
)
def test_a_list_has_a_comment_that_says_how_complete_it_is(written: Written, ending: str) -> None:
    assert written.printed.strip() in "\n".join(written.lines(ending))
