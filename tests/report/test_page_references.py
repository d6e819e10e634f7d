"""The page of a report with references, in a browser: what is right, and the curve of coverage."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli.report import coverage_curve, with_references
from tests.report.browser import DESKTOP, PHONE, Browser
from tests.report.pages import RECORDS, draw_first, record, shown, toggle, write


def write_judged(folder: Path) -> Path:
    """Write the page of a report with references: one right, one excluded, one abstained, ..."""
    *first, last = RECORDS
    records = [*first, {**last, "abstained": True}, record(5, " ", {}, "none")]
    judged = with_references(records, ["w n", "the  tree", "b", "s a t", "a a", ""])
    curve = coverage_curve(judged, tokenizer=None)
    return write(folder, judged, [(0, draw_first())], curve)


@pytest.fixture
def judged(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page of that report, which leaves nothing in the console."""
    browser.open(write_judged(tmp_path))
    yield browser
    assert browser.complaints() == []


def test_rows_are_marked_as_right_or_wrong(judged: Browser) -> None:
    """A blank line, whose output is `no output`, has no mark."""
    marks = (
        "[...document.querySelectorAll('#rows .best')].map(e => e.textContent.slice(0, 2).trim())"
    )
    assert judged(marks) == ["✗", "✓", "✗", "✗", "✗", "no"]


def test_a_row_says_that_the_model_abstained(judged: Browser) -> None:
    best = judged("document.querySelector('#row-4 .best').textContent")
    assert best == "✗ abstained: unfinished: a a a a"


def test_the_summary_has_the_shares_of_right_outputs_and_abstentions(judged: Browser) -> None:
    assert "20.0 % right20.0 % abstained" in judged("at('summary').textContent")


def test_right_outputs_and_blank_lines_can_be_hidden(judged: Browser) -> None:
    toggle(judged, "right")
    assert shown(judged) == [0, 2, 3, 4, 5]
    toggle(judged, "blank")
    assert shown(judged) == [0, 2, 3, 4]


def test_a_sentence_has_its_reference(judged: Browser) -> None:
    """It says where the reference is among the hypotheses."""
    references = []
    for number in (0, 1, 2, 3):
        judged(f"openSentence({number})")
        references.append(judged("at('reference').textContent"))
    assert references == [
        "✗ wrong. Reference: w n (hypothesis 2)",
        "✓ right.",
        "✗ wrong. Reference: b (no hypothesis here)",
        "✗ wrong. Reference: s a t (the model excludes it)",
    ]


def test_a_sentence_says_that_the_model_abstained(judged: Browser) -> None:
    judged("openSentence(4)")
    assert "Abstained" in judged("at('sentence').textContent")


def test_a_blank_line_has_no_reference(judged: Browser) -> None:
    judged("openSentence(5)")
    assert judged("at('reference')") is None


CIRCLES = "[...document.querySelectorAll('.coverage circle')]"


def test_the_curve_of_coverage_has_a_point_for_each_rule(judged: Browser) -> None:
    """Four of five sentences are kept, one of which is right; a blank line is no sentence."""
    titles = judged(f"{CIRCLES}.map(e => e.textContent)")
    assert titles[0] == "all: 80.0 % kept, Accuracy (%) 25.0"
    assert "p >= 0.5: 60.0 % kept, Accuracy (%) 33.3" in titles
    assert "only one possible: 20.0 % kept, Accuracy (%) 0.0" in titles


def test_the_points_of_the_curve_are_within_its_axes(judged: Browser) -> None:
    positions = judged(f"{CIRCLES}.map(e => Number(e.getAttribute('cx')))")
    assert 30 <= min(positions) < max(positions) <= 234


def test_the_line_of_the_curve_goes_from_the_most_kept_to_the_least(judged: Browser) -> None:
    """It joins the points of all rules but certificates."""
    line = judged("document.querySelector('.coverage polyline').attributes.points.value.split(' ')")
    xs = [float(point.split(",")[0]) for point in line]
    assert xs == sorted(xs, reverse=True)


# --- on a phone ---

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
    """Of the document, in CSS pixels."""
    beyond: list[str]
    """HTML of the elements beyond the screen."""
    cut: list[str]
    """HTML of the elements that are cut."""
    complaints: list[Any]


@pytest.fixture(scope="module", params=["0", "openSentence(0)"], ids=["list", "sentence"])
def on_phone(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> OnPhone:
    """The list of sentences, and one of them, on a phone."""
    browser.open(write_judged(tmp_path_factory.mktemp("phone")))
    browser.size(*PHONE)
    browser(request.param)
    measured = OnPhone(
        width=browser("document.documentElement.scrollWidth"),
        beyond=browser(BEYOND_THE_SCREEN),
        cut=browser(CUT),
        complaints=browser.complaints(),
    )
    browser.size(*DESKTOP)
    return measured


def test_a_page_is_as_wide_as_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.width == PHONE.width


def test_no_part_of_a_page_is_beyond_the_screen_of_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.beyond == []


def test_headings_and_rows_have_room_for_their_texts_on_a_phone(on_phone: OnPhone) -> None:
    assert on_phone.cut == []


def test_a_page_on_a_phone_leaves_nothing_in_the_console(on_phone: OnPhone) -> None:
    assert on_phone.complaints == []
