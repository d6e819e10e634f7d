"""The page of a report with references, in a browser: its verdicts and its curve of coverage.

| sentence | best output, probability | reference | verdict |
|---|---|---|---|
| `SECOND` | h a v e d, 0.45 | h a d, the second hypothesis | wrong |
| `RIGHT` | the tree, 0.7 | the tree | right |
| `UNLISTED` | g o e d, 0.9 | w e n t, which the search has not found | wrong |
| `EXCLUDED` | s i t, 1 | s a t, which has probability 0 | wrong |
| `ABSTAINED` | none, since the model abstained | w a s | wrong |
| `BLANK` | none, since the line is blank | none | none |
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.report.browser import Browser
from tests.report.open_list import shown, toggle
from tests.report.pages import record, write_with_references

SECOND, RIGHT, UNLISTED, EXCLUDED, ABSTAINED, BLANK = range(6)  # positions in the report

SENTENCES = [  # records with their references
    (record(SECOND, "h a v e", {"h a v e d": 0.45, "h a d": 0.32}, "optimal"), "h a d"),
    (record(RIGHT, "Der Baum", {"the tree": 0.7, "a tree": 0.3}, "exhaustive"), "the  tree"),
    (record(UNLISTED, "g o", {"g o e d": 0.9}, "none", bound=0.1), "w e n t"),
    (record(EXCLUDED, "s i t", {"s i t": 1.0}, "exhaustive"), "s a t"),
    (record(ABSTAINED, "b e", {}, "none", unfinished="b e b e", abstained=True), "w a s"),
    (record(BLANK, " ", {}, "none"), ""),
]


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page of these sentences, which leaves nothing in the console."""
    browser.open(write_with_references(tmp_path, SENTENCES))
    yield browser
    assert browser.complaints() == []


# --- verdicts --------------------------------------------------------------------------------


def test_rows_have_marks_of_right_and_wrong(page: Browser) -> None:
    """The blank line has no mark."""
    marks = page(
        "[...document.querySelectorAll('#rows .best')]"
        ".map(cell => cell.querySelector('.verdict')?.textContent.trim() ?? null)"
    )
    assert marks == ["✗", "✓", "✗", "✗", "✗", None]


def test_a_row_says_that_the_model_abstained(page: Browser) -> None:
    best = page(f"document.querySelector('#row-{ABSTAINED} .best').textContent")
    assert best == "✗ abstained: unfinished: b e b e"


def test_the_summary_has_the_share_of_right_outputs(page: Browser) -> None:
    """One of five: the blank line does not count."""
    assert "20.0 % right" in page("at('summary').textContent")


def test_the_summary_has_the_share_of_abstentions(page: Browser) -> None:
    assert "20.0 % abstained" in page("at('summary').textContent")


def test_right_outputs_can_be_hidden(page: Browser) -> None:
    toggle(page, "right")
    assert shown(page) == [SECOND, UNLISTED, EXCLUDED, ABSTAINED, BLANK]


def test_wrong_outputs_can_be_hidden(page: Browser) -> None:
    toggle(page, "wrong")
    assert shown(page) == [RIGHT, BLANK]


def test_blank_lines_can_be_hidden(page: Browser) -> None:
    toggle(page, "blank")
    assert shown(page) == [SECOND, RIGHT, UNLISTED, EXCLUDED, ABSTAINED]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        pytest.param(SECOND, "✗ wrong. Reference: h a d (hypothesis 2)", id="second"),
        pytest.param(RIGHT, "✓ right.", id="right"),
        pytest.param(UNLISTED, "✗ wrong. Reference: w e n t (no hypothesis here)", id="not found"),
        pytest.param(EXCLUDED, "✗ wrong. Reference: s a t (the model excludes it)", id="excluded"),
    ],
)
def test_a_sentence_says_where_its_reference_is(page: Browser, sentence: int, text: str) -> None:
    page(f"openSentence({sentence})")
    assert page("at('reference').textContent") == text


def test_a_sentence_says_that_the_model_abstained(page: Browser) -> None:
    page(f"openSentence({ABSTAINED})")
    assert "Abstained" in page("at('sentence').textContent")


def test_a_blank_line_has_no_reference(page: Browser) -> None:
    page(f"openSentence({BLANK})")
    assert page("at('reference')") is None


# --- the curve -------------------------------------------------------------------------------


class Point(NamedTuple):
    """A point of the curve: what a rule keeps of the five sentences."""

    rule: str
    kept: float
    """Share of the sentences, in %."""
    accuracy: float
    """Share of right outputs among those that are kept, in %."""


BY_PROBABILITY = [
    Point("all", 80, 25),  # the model abstained from the fifth
    Point("p >= 0.3", 80, 25),
    Point("p >= 0.5", 60, 100 / 3),
    Point("p >= 0.7", 60, 100 / 3),
    Point("p >= 0.9", 40, 0),
    Point("p >= 0.95", 20, 0),
    Point("p >= 0.99", 20, 0),
    Point("p >= 0.999", 20, 0),
]
BY_CERTIFICATE = [
    Point("optimal or more", 60, 100 / 3),
    Point("exhaustive", 40, 50),
    Point("only one possible", 20, 0),
]
POINTS = BY_PROBABILITY + BY_CERTIFICATE


def centres(page: Browser) -> list[tuple[float, float]]:
    """Return the centres of the curve's circles: from the left and from the top, in pixels."""
    circles = page(
        "[...document.querySelectorAll('.coverage circle')]"
        ".map(e => [Number(e.getAttribute('cx')), Number(e.getAttribute('cy'))])"
    )
    return [(x, y) for x, y in circles]


def relative(values: Sequence[float]) -> list[float]:
    """Return where values stand between the least of them, 0, and the largest, 1."""
    least, most = min(values), max(values)
    return [(value - least) / (most - least) for value in values]


def test_the_curve_has_a_point_for_each_rule(page: Browser) -> None:
    titles = page("[...document.querySelectorAll('.coverage circle')].map(e => e.textContent)")
    assert titles == [
        f"{point.rule}: {point.kept:.1f} % kept, Accuracy (%) {point.accuracy:.1f}"
        for point in POINTS
    ]


def test_points_stand_further_right_the_more_is_kept(page: Browser) -> None:
    from_left = [x for x, _ in centres(page)]
    assert relative(from_left) == pytest.approx(relative([point.kept for point in POINTS]))


def test_points_stand_higher_the_more_is_right(page: Browser) -> None:
    heights = [-y for _, y in centres(page)]
    assert relative(heights) == pytest.approx(relative([point.accuracy for point in POINTS]))


def test_the_points_are_within_the_axes(page: Browser) -> None:
    """The axes are one path: from the top down, then to the right."""
    path = page("document.querySelector('.coverage .axes').getAttribute('d')")
    ends = re.fullmatch(r"M(\d+) (\d+)V(\d+)H(\d+)", path)
    assert ends is not None
    left, top, bottom, right = map(int, ends.groups())
    points = centres(page)
    assert len(points) == len(POINTS)
    for x, y in points:
        assert left <= x <= right
        assert top <= y <= bottom


def test_the_line_joins_the_points_by_probability(page: Browser) -> None:
    """Those by certificate stand alone."""
    line = page("document.querySelector('.coverage polyline').getAttribute('points')")
    corners = [tuple(map(float, point.split(","))) for point in line.split()]
    assert corners == centres(page)[: len(BY_PROBABILITY)]
