"""The pictures of a page, in a browser: they read as the text does, in every script.

A model may write the last token first, and a script may run from right to left: four cases, in each
of which one page is opened.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page_drawing import drawing
from tests.report.browser import Browser
from tests.report.pages import NAMES, draw_first, record, write
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed, N, W


class Reading(NamedTuple):
    """A script and a direction of writing, and how pictures show the model's w, e, d and end."""

    letters: str
    """What stands for the model's w, n, e and d."""
    backwards: bool
    """Whether the model writes the last token first."""
    on_screen: list[str]
    """The letters of w, e and d, and `end`, from left to right."""


READINGS = {
    "latin": Reading("wned", False, ["w", "e", "d", "end"]),
    "latin, right-to-left model": Reading("wned", True, ["end", "d", "e", "w"]),
    "arabic": Reading("وناد", False, ["end", "د", "ا", "و"]),
    "arabic, right-to-left model": Reading("وناد", True, ["و", "ا", "د", "end"]),
}

# --- the page --------------------------------------------------------------------------------

BRANCHING, CHAIN = 0, 1  # the sentences of the page


def write_pictured(folder: Path, reading: Reading) -> Path:
    """Write the page of two sentences: w e d, beside which w n branches off, and only w n."""
    w, n, e, d = reading.letters
    begin, end, *_, unused = NAMES
    names = [begin, end, w, n, e, d, unused]
    table = Fixed({(): {W: 1.0}, (W,): {N: 1.0}, (W, N): {EOS: 1.0}})
    chain = build_lattice(TableStepper(len(names)), [table], [(W, N)])
    drawings = [
        (BRANCHING, draw_first(names, backwards=reading.backwards)),
        (CHAIN, drawing(chain, ["a"], names, eos=EOS, backwards=reading.backwards)),
    ]
    records = [
        record(BRANCHING, "a", {f"{w} {e} {d}": 0.45, f"{w} {n}": 0.32}, "optimal"),
        record(CHAIN, "a", {f"{w} {n}": 1.0}, "exhaustive"),
    ]
    return write(folder, records, drawings)


class Page(NamedTuple):
    """A page that is open, at the pictures of the sentence with branches.

    Selectors are those of CSS. In the lattice, all that is on the path of the best hypothesis has
    the class `on`: a circle where it starts, boxes of tokens, its end, and the edges between them.
    """

    reading: Reading
    browser: Browser

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements, in the order on the screen from left to right."""
        places = self.browser(
            f"[...document.querySelectorAll('{selector}')]"
            ".map(e => [e.getBoundingClientRect().x, e.textContent])"
        )
        return [text for _, text in sorted(places)]

    def sides(self, selector: str) -> list[tuple[float, float]]:
        """Return the left and the right side of shapes of the lattice."""
        boxes = self.browser(
            f"[...document.querySelectorAll('.lattice {selector}')]"
            ".map(e => e.getBBox()).map(box => [box.x, box.x + box.width])"
        )
        return [(left, right) for left, right in boxes]


@pytest.fixture(scope="module", params=READINGS.values(), ids=READINGS)
def page(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Page:
    """The page of a script and a direction of writing."""
    browser.open(write_pictured(tmp_path_factory.mktemp("pictures"), request.param))
    browser(f"openSentence({BRANCHING})")
    return Page(request.param, browser)


# --- the pictures ----------------------------------------------------------------------------


def test_distributions_stand_in_the_order_of_the_text(page: Page) -> None:
    chosen_tokens = page.texts(".supports .taken bdi")
    assert chosen_tokens == page.reading.on_screen


def test_columns_of_attention_stand_in_the_order_of_the_text(page: Page) -> None:
    heads_of_columns = page.texts(".attention thead bdi")
    assert heads_of_columns == page.reading.on_screen


def test_the_path_of_a_lattice_reads_as_the_text(page: Page) -> None:
    boxes = page.texts(".lattice g.box.on text")
    assert boxes == [text for text in page.reading.on_screen if text != "end"]


def test_the_end_of_a_path_is_where_the_text_ends(page: Page) -> None:
    """The circle at the start has no text, and the end has its probability."""
    texts = page.texts(".lattice circle.on, .lattice g.end.on")
    shapes_on_screen = ["end" if text else "start" for text in texts]
    ends_at_the_right = page.reading.on_screen[-1] == "end"
    assert shapes_on_screen == (["start", "end"] if ends_at_the_right else ["end", "start"])


def test_edges_reach_from_shape_to_shape(page: Page) -> None:
    """They meet up to a pixel."""
    edges, shapes = page.sides("path.on"), page.sides(":is(circle, g).on")
    assert len(edges) == len(page.reading.on_screen)
    for left, right in edges:
        assert any(abs(left - right_of_shape) < 1 for _, right_of_shape in shapes)
        assert any(abs(right - left_of_shape) < 1 for left_of_shape, _ in shapes)


def test_the_title_of_the_last_box_has_the_whole_path(page: Page) -> None:
    """The path is in the order of the text; boxes stand in the document as the model wrote them."""
    title = page.browser(
        "[...document.querySelectorAll('.lattice g.box.on title')].at(-1).textContent"
    )
    w, _, e, d = page.reading.letters
    path = [d, e, w] if page.reading.backwards else [w, e, d]
    assert title.split("\n")[0].split() == path  # the second line has the probability


@pytest.fixture
def only_box(page: Page) -> Iterator[str]:
    """The text of the only box of the sentence without branches, which is open meanwhile."""
    page.browser(f"openSentence({CHAIN})")
    yield page.browser("document.querySelector('.lattice g.box text').textContent")
    page.browser(f"openSentence({BRANCHING})")


def test_a_box_of_several_tokens_is_in_the_order_of_the_text(page: Page, only_box: str) -> None:
    w, n, *_ = page.reading.letters
    assert only_box.split() == ([n, w] if page.reading.backwards else [w, n])


def test_pictures_leave_nothing_in_the_console(page: Page) -> None:
    assert page.browser.complaints() == []
