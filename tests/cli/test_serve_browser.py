"""The page of `onmt-entmax serve` in a browser.

The scripts run in the page. `at(id)` and `model` are its own: an element, and what the page knows
of the model. A script that ends in `, 0` has a value of no interest, which JSON may not have.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from tests.cli.serving import TASK, address_of, copy_with_cells, running_server
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.report.browser import Browser
from tests.string_models import PHONES, task_options, write_phones

TITLE = "words" * 20  # longer than a line of a phone


class Page:
    """The open page, with what tests do to its form."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def value(self, script: str) -> Any:
        return self.browser(script)

    def run(self, statement: str) -> None:
        self.browser(f"({statement}, 0)")

    def fill(self, field: str, text: str) -> None:
        """Put a text into a field, without the event that typing has."""
        self.run(f"at('{field}').value = '{text}'")

    def notify(self, field: str) -> None:
        """Tell the page that a field was typed into."""
        self.run(f"at('{field}').dispatchEvent(new Event('input', {{bubbles: true}}))")

    def type(self, field: str, text: str) -> None:
        self.fill(field, text)
        self.notify(field)

    def follow(self, query: str) -> None:
        """Follow a link to a query."""
        self.run(f"location.hash = '#{query}'")

    def wait_for_title(self, title: str) -> None:
        """Wait for the answer with this title."""
        self.browser.until(f"at('title')?.textContent === '{title}'")

    def wait_for_state(self, text: str) -> None:
        self.browser.until(f"at('state').textContent === '{text}'")


@pytest.fixture(scope="module")
def address(inflection_model: Path) -> Iterator[str]:
    """The address of the page of a model of inflection."""
    with running_server(Answering(inflection_model, TASK), TITLE) as server:
        yield address_of(server)


@pytest.fixture
def page(browser: Browser, address: str) -> Page:
    """The page of a model of inflection, before the first query."""
    browser.open(address)
    return Page(browser)


def test_the_page_opens_with_the_example_of_the_model(page: Page) -> None:
    page.run("model.example = {language: 'english', source: 'b', tags: 'PST'}, follow()")
    page.wait_for_title("b english PST")
    assert page.browser.complaints() == []


@pytest.mark.parametrize(("typed", "offered"), [("", ["PST", "V"]), ("V;", ["V;PST", "V;V"])])
def test_the_page_offers_tags(page: Page, typed: str, offered: list[str]) -> None:
    page.type("tags", typed)
    assert page.value("[...at('offered').children].map(e => e.value)") == offered
    assert page.browser.complaints() == []


@pytest.fixture
def typed_page(page: Page) -> Page:
    """The page after a word was typed, with an unknown letter."""
    page.fill("language", "german")
    page.fill("tags", "V")
    page.run("at('source').focus()")
    for key in ("a", "c"):
        page.browser.press(key)
    page.wait_for_title("ac german V")
    return page


def test_the_page_answers_as_one_types(typed_page: Page) -> None:
    ends = typed_page.value("document.querySelectorAll('.lattice g.end').length")
    outputs = typed_page.value("document.querySelectorAll('#hypotheses li').length")
    assert ends == outputs > 0
    assert typed_page.browser.complaints() == []


def test_the_address_has_the_typed_query(typed_page: Page) -> None:
    assert typed_page.value("location.hash") == "#language=german&source=ac&tags=V"


def test_the_page_warns_of_an_unknown_letter(typed_page: Page) -> None:
    warning = typed_page.value("document.querySelector('#answer .alarm').textContent")
    assert warning.startswith("1 of 4 source tokens not in the vocabulary.")
    assert warning.endswith("character c")


@pytest.fixture
def answered_page(page: Page) -> Page:
    page.follow("language=english&source=b&tags=PST")
    page.wait_for_title("b english PST")
    return page


def test_a_link_asks_again(answered_page: Page) -> None:
    answered_page.follow("language=english&source=b&tags=V")
    answered_page.wait_for_title("b english V")
    assert answered_page.browser.complaints() == []


def complaints_but_of_refusals(browser: Browser) -> list[Any]:
    """Return the complaints of the browser, without those of queries with status 400."""
    return [complaint for complaint in browser.complaints() if "400" not in str(complaint)]


def ask_without_lemma(page: Page) -> None:
    page.run("at('source').removeAttribute('required')")
    page.fill("source", "")
    page.run("at('ask').click()")
    page.wait_for_state("the lemma is empty")


def test_an_error_takes_the_place_of_the_answer(answered_page: Page) -> None:
    ask_without_lemma(answered_page)
    assert answered_page.value("at('answer').childNodes.length") == 0
    assert complaints_but_of_refusals(answered_page.browser) == []


def test_an_empty_field_asks_nothing(answered_page: Page) -> None:
    """The error of the query before it is gone."""
    ask_without_lemma(answered_page)
    answered_page.run("at('source').required = true")
    answered_page.notify("source")
    answered_page.wait_for_state("")
    assert complaints_but_of_refusals(answered_page.browser) == []


def test_another_language_keeps_a_paradigm_that_it_has_too(page: Page) -> None:
    """Else the page asks for tags again."""
    page.run("model.pos = {english: {V: 2}, german: {V: 3}}")
    for language, pos in (("english", ""), ("german", "V"), ("x", "")):
        page.type("language", language)
        assert page.value("[at('pos').value, at('tags').disabled]") == [pos, bool(pos)]
        page.type("pos", "V")
    assert complaints_but_of_refusals(page.browser) == []


UNLABELLED = """[...document.querySelectorAll('input, select, textarea, [role=listbox], .scroll')]
    .filter(e => !(e.labels?.[0]?.textContent || e.ariaLabel)).map(e => e.outerHTML)"""
BEYOND_THE_SCREEN = """[...document.querySelectorAll('main *')]
    .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > 391)
    .map(e => e.outerHTML)"""


def assert_fits_phones(browser: Browser) -> None:
    """Fail unless a phone shows the whole page, and screen readers name all fields."""
    browser.size(390, 844)
    assert browser("document.documentElement.scrollWidth") == 390
    assert browser(BEYOND_THE_SCREEN) == []
    assert browser(UNLABELLED) == []
    browser.size(1280, 900)


@pytest.fixture(scope="module")
def turkish_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pronunciations in a language of which the page knows a word, kitap."""
    vocabularies = vocabularies_of(("lang=turkish", *"kitap"), PHONES)
    options = task_options(("language", "source", "target"), {"target": " "})
    folder = tmp_path_factory.mktemp("turkish") / "model"
    return write_model(folder, 3, vocabularies, options=options)


@pytest.fixture(scope="module")
def turkish_address(turkish_model: Path) -> Iterator[str]:
    with running_server(Answering(turkish_model, TASK), TITLE) as server:
        yield address_of(server)


@pytest.fixture
def turkish_page(browser: Browser, turkish_address: str) -> Page:
    """The page of pronunciations, with its answered example."""
    browser.open(turkish_address)
    page = Page(browser)
    page.wait_for_title("kitap turkish")
    return page


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
    assert_fits_phones(turkish_page.browser)
    assert turkish_page.browser.complaints() == []


@pytest.fixture(scope="module")
def phones_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a model without languages, of which no word is known."""
    model = write_phones(tmp_path_factory.mktemp("phones") / "model", 3)
    with running_server(Answering(model, TASK), TITLE) as server:
        yield address_of(server)


@pytest.fixture
def empty_page(browser: Browser, phones_address: str) -> Page:
    browser.open(phones_address)
    return Page(browser)


def test_without_an_example_a_page_says_what_to_type(empty_page: Page) -> None:
    assert empty_page.value("at('source').placeholder") == "type a word"
    assert empty_page.value("at('answer').childNodes.length") == 0
    assert empty_page.value("at('state').textContent") == ""


def test_one_may_type_at_once(empty_page: Page) -> None:
    assert empty_page.value("document.activeElement.id") == "source"
    empty_page.browser.press("a")
    empty_page.wait_for_title("a")
    assert_fits_phones(empty_page.browser)
    assert empty_page.browser.complaints() == []


def test_links_of_earlier_versions_lead_to_their_query(empty_page: Page) -> None:
    empty_page.follow("lemma=b")
    empty_page.wait_for_title("b")
    assert empty_page.browser.complaints() == []


def test_a_paradigm_leads_to_its_cells(
    browser: Browser, inflection_model: Path, tmp_path: Path
) -> None:
    model = copy_with_cells(inflection_model, tmp_path / "model", [("V",), ("V", "PST")])
    with running_server(Answering(model, TASK), TITLE) as server:
        browser.open(address_of(server))
        page = Page(browser)
        page.follow("language=german&source=ab&pos=V")
        browser.until("document.querySelectorAll('.paradigm td a').length === 2")
        assert_fits_phones(browser)
        page.run("document.querySelector('.paradigm td a').click()")
        browser.until("/^ab german V/.test(at('title')?.textContent)")
        assert page.value("[at('pos').value, at('tags').disabled]") == ["", False]
        assert_fits_phones(browser)
        assert browser.complaints() == []
