"""The page of a model of inflection in a browser: a query is typed, or comes by a link."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, running_server
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.report.browser import Browser

# --- the page before the first query ---


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


def test_the_page_opens_with_an_example_that_the_model_knows(
    browser: Browser, tmp_path: Path
) -> None:
    """`draw` is a word of onmt_entmax/page_example.tsv."""
    vocabularies = vocabularies_of(("lang=english", "+V", "+V.PTCP", "+PST", *"draw"), "draw")
    model = write_model(tmp_path / "model", 22, vocabularies)
    with (
        running_server(Answering(model, TASK)) as server,
        opened(browser, address_of(server)) as page,
    ):
        page.wait_for_title("draw english V;V.PTCP;PST")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("", ["PST", "V"], id="first tag"),
        pytest.param("V;", ["V;PST", "V;V"], id="next tag"),
    ],
)
def test_the_page_offers_tags(page: Page, typed: str, offered: list[str]) -> None:
    page.type("tags", typed)
    assert page.value("[...at('offered').children].map(e => e.value)") == offered


# --- a typed query ---


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


# --- links and errors ---


@pytest.fixture
def answered_page(page: Page) -> Page:
    """The page after it has answered a link."""
    page.follow("language=english&source=b&tags=PST")
    page.wait_for_title("b english PST")
    return page


def test_another_link_is_another_query(answered_page: Page) -> None:
    answered_page.follow("language=english&source=b&tags=V")
    answered_page.wait_for_title("b english V")


@pytest.fixture
def refused_page(answered_page: Page) -> Page:
    """The page after a link to a language that the model does not know."""
    answered_page.follow("language=dutch&source=b&tags=V")
    answered_page.wait_for_state("the model knows no language 'dutch'; it knows english, german")
    return answered_page


def test_an_error_takes_the_place_of_the_answer(refused_page: Page) -> None:
    assert refused_page.value("at('answer').childNodes.length") == 0


def test_an_error_is_gone_after_the_next_query(refused_page: Page) -> None:
    refused_page.type("language", "english")
    refused_page.wait_for_title("b english V")


def test_the_server_is_not_asked_while_a_required_field_is_empty(refused_page: Page) -> None:
    answers = "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/answer'))"
    requests = refused_page.value(f"{answers}.length")
    assert requests > 0
    refused_page.type("source", "")
    refused_page.wait_for_state("")  # the page has checked the form by then
    assert refused_page.value(f"{answers}.length") == requests
