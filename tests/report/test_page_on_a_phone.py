"""The page of a report on the screen of a phone: nothing is beyond the screen, and nothing cut."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.report.browser import DESKTOP, PHONE, Browser
from tests.report.pages import RECORDS, draw_first, write_with_references

# Elements to the right of the screen, up to a pixel, but for those that scroll.
BEYOND_THE_SCREEN = """[...document.querySelectorAll('main *')]
    .filter(e => !e.closest('.scroll, .body, .head'))
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML)"""
# Headings of columns, and rows, that are larger inside than outside.
CUT = """[...document.querySelectorAll('.head > div, #rows .row')]
    .filter(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight)
    .map(e => e.outerHTML)"""


class OnPhone(NamedTuple):
    """How a page stands on the screen of a phone."""

    width: int
    """Width of the document, in CSS pixels."""
    beyond: list[str]
    """HTML of the elements beyond the screen."""
    cut: list[str]
    """HTML of the elements that are cut."""
    complaints: list[Any]


@pytest.fixture(scope="module")
def phone(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A page with references and pictures, on a phone."""
    sentences = [(record, "reference") for record in RECORDS]
    folder = tmp_path_factory.mktemp("phone")
    browser.open(write_with_references(folder, sentences, [(0, draw_first())]))
    browser.size(*PHONE)
    yield browser
    browser.size(*DESKTOP)


@pytest.fixture(scope="module", params=["undefined", "0"], ids=["list", "sentence"])
def on_phone(request: pytest.FixtureRequest, phone: Browser) -> OnPhone:
    """The list of sentences, which is open if no sentence is, or the first sentence."""
    phone(f"openSentence({request.param})")
    return OnPhone(
        width=phone("document.documentElement.scrollWidth"),
        beyond=phone(BEYOND_THE_SCREEN),
        cut=phone(CUT),
        complaints=phone.complaints(),
    )


def test_a_page_is_as_wide_as_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.width == PHONE.width


def test_no_part_of_a_page_is_beyond_the_screen_of_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.beyond == []


def test_headings_and_rows_have_room_for_their_texts_on_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.cut == []


def test_a_page_on_a_phone_leaves_nothing_in_the_console(on_phone: OnPhone) -> None:
    assert on_phone.complaints == []
