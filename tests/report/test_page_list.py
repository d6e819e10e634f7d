"""The list of sentences of a page, in a browser: what it shows, hides and finds."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.pages import EVIL, RECORDS, TITLE, draw_first, record, shown, toggle, write


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page of all records, which leaves nothing in the console."""
    browser.open(write(tmp_path, RECORDS, [(0, draw_first())]))
    yield browser
    assert browser.complaints() == []


def type_query(browser: Browser, text: str) -> list[int]:
    """Type a query into the field of the search; return the numbers of the sentences shown."""
    typed = json.dumps(text)
    browser(f"(at('query').value = {typed}, at('query').dispatchEvent(new Event('input')))")
    return shown(browser)


def test_a_page_shows_its_sentences_in_order(opened: Browser) -> None:
    assert shown(opened) == [0, 1, 2, 3, 4]


def test_texts_of_sentences_are_shown_as_they_are(opened: Browser) -> None:
    """The source and the output of the third sentence look like HTML."""
    cells = "[...document.querySelectorAll('#row-2 .source, #row-2 .best')].map(e => e.textContent)"
    assert opened(cells) == [" ".join(EVIL.split())] * 2


def test_texts_of_sentences_and_the_title_add_no_elements(opened: Browser) -> None:
    assert opened("document.querySelectorAll('h1 b, .row b, .row script').length") == 0


def test_texts_of_sentences_are_not_run_as_scripts(opened: Browser) -> None:
    assert opened("typeof hacked") == "undefined"


def test_the_title_of_a_page_is_shown_as_it_is(opened: Browser) -> None:
    assert opened("document.title") == TITLE


def test_a_page_has_a_summary(opened: Browser) -> None:
    assert "60.0 % most probable output proven" in opened("at('summary').textContent")


def test_scores_are_not_called_probabilities(browser: Browser, tmp_path: Path) -> None:
    scored = record(0, "a", {"b": 0.2}, "optimal")
    scored["hypotheses"][0]["score"] = 1.0
    browser.open(write(tmp_path, [scored]))
    assert "100.0 % highest scored output proven" in browser("at('summary').textContent")


def test_an_unfinished_output_is_marked(opened: Browser) -> None:
    best = opened("document.querySelector('#row-4 .best').textContent")
    assert best == "unfinished: a a a a"


def test_sentences_of_a_certificate_can_be_hidden(opened: Browser) -> None:
    toggle(opened, "none")
    assert shown(opened) == [0, 1, 3]


def test_the_number_of_sentences_that_are_not_hidden_is_shown(opened: Browser) -> None:
    toggle(opened, "none")
    assert opened("at('count').textContent") == "3 of 5"


def test_sentences_that_were_hidden_can_be_shown_again(opened: Browser) -> None:
    toggle(opened, "none")
    toggle(opened, "exhaustive")
    assert shown(opened) == [0]
    toggle(opened, "exhaustive")
    assert shown(opened) == [0, 1, 3]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        pytest.param("TREE", [1], id="in capital letters"),
        pytest.param("tree der", [1], id="words of output and source, in any order"),
        pytest.param("wn", [0], id="w n without spaces, not the best hypothesis"),
        pytest.param("d r a", [0], id="part of a source"),
        pytest.param("nothing has this", [], id="nothing"),
        pytest.param("", [0, 1, 2, 3, 4], id="no query"),
    ],
)
def test_sentences_can_be_searched(opened: Browser, query: str, numbers: list[int]) -> None:
    """A query is looked for in sources and in all hypotheses."""
    assert type_query(opened, query) == numbers


def test_a_search_without_a_result_says_so(opened: Browser) -> None:
    type_query(opened, "nothing has this")
    assert opened("at('empty').hidden") is False


def test_a_search_is_among_the_sentences_that_are_not_hidden(opened: Browser) -> None:
    toggle(opened, "none")
    assert type_query(opened, "tree") == [1]
    assert type_query(opened, "") == [0, 1, 3]
