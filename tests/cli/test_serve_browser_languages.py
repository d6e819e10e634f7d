"""The form of `onmt-entmax serve` in a browser, when the language of a paradigm changes.

Languages have paradigms of their own: training saw cells of English and German verbs here, and none
of Dutch.
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
VERBS = {("V", "PRS"): 1, ("V", "PST"): 1}  # cells, and their numbers of training rows


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a model of these languages."""
    vocabularies = vocabularies_of((*LANGUAGES, "+V", "+PRS", "+PST", *"ab"), "ab")
    model = write_model(tmp_path_factory.mktemp("languages") / "model", 22, vocabularies)
    (model / CELLS).write_text(cells_text({"english": VERBS, "german": VERBS}), encoding="utf-8")
    write_list(model)
    with running_server(Answering(model, TASK)) as server:
        yield address_of(server)


@pytest.fixture
def german_paradigm(browser: Browser, address: str) -> Iterator[Page]:
    """The page of the paradigm of a German verb."""
    with opened(browser, address) as page:
        page.follow("language=german&source=ab&pos=V")
        browser.until("document.querySelectorAll('.paradigm td a').length === 2")
        yield page


def test_a_paradigm_is_kept_for_a_language_that_has_it(german_paradigm: Page) -> None:
    german_paradigm.type("language", "english")
    assert german_paradigm.value("at('pos').value") == "V"


def test_tags_are_asked_for_if_the_language_has_no_paradigms(german_paradigm: Page) -> None:
    assert german_paradigm.value("at('tags').disabled")
    german_paradigm.type("language", "dutch")
    assert not german_paradigm.value("at('tags').disabled")
