"""The page of a report with references, in a browser: what is right, and the curve of coverage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.pages import shown, toggle, write_judged


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
    """Four of five sentences are kept, one of which is right; a blank line does not count."""
    titles = judged(f"{CIRCLES}.map(e => e.textContent)")
    assert titles[0] == "all: 80.0 % kept, Accuracy (%) 25.0"
    assert "p >= 0.5: 60.0 % kept, Accuracy (%) 33.3" in titles
    assert "only one possible: 20.0 % kept, Accuracy (%) 0.0" in titles


def test_the_points_of_the_curve_are_within_its_axes(judged: Browser) -> None:
    positions = judged(f"{CIRCLES}.map(e => Number(e.getAttribute('cx')))")
    left, right = 30, 234  # ends of the axis, by the path that page_summary.js draws
    assert left <= min(positions) < max(positions) <= right


def test_the_line_of_the_curve_goes_from_the_most_kept_to_the_least(judged: Browser) -> None:
    """It joins the points of all rules but certificates."""
    line = judged("document.querySelector('.coverage polyline').attributes.points.value.split(' ')")
    xs = [float(point.split(",")[0]) for point in line]
    assert xs == sorted(xs, reverse=True)
