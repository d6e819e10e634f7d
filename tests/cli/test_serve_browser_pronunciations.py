"""The pages of models of pronunciations in a browser, with and without languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, running_server
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.report.browser import Browser
from tests.string_models import PHONES, task_options, write_phones

TITLE = "words" * 20  # longer than a line of a phone


@pytest.fixture(scope="module")
def turkish_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pronunciations in Turkish; the page knows the example `kitap` of that language."""
    vocabularies = vocabularies_of(("lang=turkish", *"kitap"), PHONES)
    options = task_options(("language", "source", "target"), {"target": " "})
    folder = tmp_path_factory.mktemp("turkish") / "model"
    return write_model(folder, 3, vocabularies, options=options)


@pytest.fixture(scope="module")
def turkish_address(turkish_model: Path) -> Iterator[str]:
    with running_server(Answering(turkish_model, TASK), TITLE) as server:
        yield address_of(server)


@pytest.fixture
def turkish_page(browser: Browser, turkish_address: str) -> Iterator[Page]:
    """The page of pronunciations, with its answered example."""
    with opened(browser, turkish_address) as page:
        page.wait_for_title("kitap turkish")
        yield page


def test_the_form_has_the_fields_of_the_task(turkish_page: Page) -> None:
    fields = turkish_page.value("[...at('question').elements].map(e => e.id)")
    assert fields == ["language", "source", "ask"]


def test_outputs_are_listed_with_their_symbols_apart(
    turkish_page: Page, turkish_model: Path
) -> None:
    """An output of a single letter is listed, too."""
    query = {"language": "turkish", "source": "kitap"}
    record = Answering(turkish_model, TASK).answer(query)["record"]
    listed = turkish_page.value(
        "[...document.querySelectorAll('#hypotheses bdi')].map(e => e.innerHTML)"
    )
    assert listed == [hypothesis["text"] for hypothesis in record["hypotheses"]]


def test_the_state_has_the_best_output_and_what_is_proven(turkish_page: Page) -> None:
    best = turkish_page.value("document.querySelector('#hypotheses bdi').innerHTML")
    state = turkish_page.value("at('state').textContent")
    assert state.startswith(f"{best}, ")
    assert "proven" in state.lower()


def test_an_answered_page_fits_phones(turkish_page: Page) -> None:
    turkish_page.assert_fits_phones()


def test_the_fields_of_an_answered_page_are_labelled(turkish_page: Page) -> None:
    turkish_page.assert_labelled()


@pytest.fixture(scope="module")
def phones_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a model without languages, which has no example."""
    model = write_phones(tmp_path_factory.mktemp("phones") / "model", 3)
    with running_server(Answering(model, TASK), TITLE) as server:
        yield address_of(server)


@pytest.fixture
def empty_page(browser: Browser, phones_address: str) -> Iterator[Page]:
    with opened(browser, phones_address) as page:
        yield page


def test_a_page_without_an_example_says_what_to_type(empty_page: Page) -> None:
    assert empty_page.value("at('source').placeholder") == "type a word"


def test_a_page_without_an_example_has_no_answer(empty_page: Page) -> None:
    assert empty_page.value("at('answer').childNodes.length") == 0
    assert empty_page.value("at('state').textContent") == ""


def test_one_may_type_at_once(empty_page: Page) -> None:
    assert empty_page.value("document.activeElement.id") == "source"
    empty_page.browser.press("a")
    empty_page.wait_for_title("a")


def test_links_of_earlier_versions_lead_to_their_query(empty_page: Page) -> None:
    empty_page.follow("lemma=b")
    empty_page.wait_for_title("b")
