"""The page of a model of inflection in a browser: queries by typing, by links, and their errors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, running_server
from tests.report.browser import Browser


@pytest.fixture(scope="module")
def address(inflection_model: Path) -> Iterator[str]:
    """The address of the page of a model of inflection."""
    with running_server(Answering(inflection_model, TASK)) as server:
        yield address_of(server)


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The page of a model of inflection, before the first query."""
    with opened(browser, address) as page:
        yield page


def test_the_page_opens_with_the_example_of_the_model(page: Page) -> None:
    page.run("model.example = {language: 'english', source: 'b', tags: 'PST'}, follow()")
    page.wait_for_title("b english PST")


@pytest.mark.parametrize(("typed", "offered"), [("", ["PST", "V"]), ("V;", ["V;PST", "V;V"])])
def test_the_page_offers_tags(page: Page, typed: str, offered: list[str]) -> None:
    page.type("tags", typed)
    assert page.value("[...at('offered').children].map(e => e.value)") == offered


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


def ask_without_lemma(page: Page) -> None:
    page.run("at('source').removeAttribute('required')")
    page.fill("source", "")
    page.run("at('ask').click()")
    page.wait_for_state("the lemma is empty")


def test_an_error_takes_the_place_of_the_answer(answered_page: Page) -> None:
    ask_without_lemma(answered_page)
    assert answered_page.value("at('answer').childNodes.length") == 0


def test_an_empty_field_asks_nothing(answered_page: Page) -> None:
    """The error of the query before it is gone."""
    ask_without_lemma(answered_page)
    answered_page.run("at('source').required = true")
    answered_page.notify("source")
    answered_page.wait_for_state("")


def test_another_language_keeps_a_paradigm_that_it_has_too(page: Page) -> None:
    """For a language without the paradigm, the page asks for tags again."""
    page.run("model.pos = {english: {V: 2}, german: {V: 3}}")
    for language, pos in (("english", ""), ("german", "V"), ("x", "")):
        page.type("language", language)
        assert page.value("[at('pos').value, at('tags').disabled]") == [pos, bool(pos)]
        page.type("pos", "V")
