"""The form of `onmt-entmax serve` in a browser, when the language of a paradigm changes.

Each language has its own paradigms: here, training saw two cells of German verbs, three of English
ones, and none of Dutch ones.
"""

from collections.abc import Iterator

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.files.checksums import write_list
from onmt_entmax.strings.cells import cells_text
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, running_server
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.report.browser import Browser

LANGUAGES = ("lang=dutch", "lang=english", "lang=german")
GERMAN_CELLS: list[tuple[str, ...]] = [("V", "PRS"), ("V", "PST")]
ENGLISH_CELLS: list[tuple[str, ...]] = [("V",), *GERMAN_CELLS]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a model of these languages."""
    vocabularies = vocabularies_of((*LANGUAGES, "+V", "+PRS", "+PST", *"ab"), "ab")
    folder = tmp_path_factory.mktemp("languages") / "model"
    model = write_model(folder, seed=22, vocabularies=vocabularies)  # any weights would do
    counts = {  # of the training rows of each cell
        "english": dict.fromkeys(ENGLISH_CELLS, 1),
        "german": dict.fromkeys(GERMAN_CELLS, 1),
    }
    (model / CELLS).write_text(cells_text(counts), encoding="utf-8")
    write_list(model)  # with the checksum of that file
    with running_server(Answering(model, TASK)) as server:
        yield address_of(server)


@pytest.fixture
def german_paradigm(browser: Browser, address: str) -> Iterator[Page]:
    """The page of the paradigm of a German verb."""
    with opened(browser, address) as page:
        page.follow("language=german&source=ab&pos=V")
        browser.until("document.querySelectorAll('.paradigm td a').length === 2")
        yield page


def shown_paradigm(page: Page) -> str:
    """Return the paradigm that the form has chosen, as it names it."""
    return str(page.value("at('pos').selectedOptions[0].textContent"))


def asks_for_tags(page: Page) -> bool:
    """Return whether one can type tags."""
    return not page.value("at('tags').disabled")


def test_a_paradigm_stays_chosen_in_a_language_that_has_it(german_paradigm: Page) -> None:
    assert shown_paradigm(german_paradigm) == "paradigm of V (2 cells)"
    german_paradigm.type("language", "english")
    assert shown_paradigm(german_paradigm) == "paradigm of V (3 cells)"


def test_tags_are_asked_for_if_the_language_has_no_paradigms(german_paradigm: Page) -> None:
    assert not asks_for_tags(german_paradigm)
    german_paradigm.type("language", "dutch")
    assert asks_for_tags(german_paradigm)
