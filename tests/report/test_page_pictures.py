"""The pictures of a page, in a browser: they read as the text does, in every script.

A model may write the last token first, and a script may run from right to left. Each combination is
opened once; the tests compare what it showed.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page import drawing
from tests.report.browser import Browser
from tests.report.pages import NAMES, draw_first, record, write
from tests.search.tables import EOS, Fixed, N, TableStepper, W


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


class Pictures(NamedTuple):
    """What pictures of the best hypothesis show, from left to right."""

    reading: Reading
    supports: list[str]
    """The chosen tokens of the next-token distributions."""
    attention: list[str]
    """Heads of the columns of the attention matrix."""
    boxes: list[str]
    """Boxes of the lattice on the hypothesis's path."""
    ends: list[str]
    """Texts of start and end of that path; the start has none."""
    edges_meet_shapes: bool
    """Whether each edge begins where a shape ends."""
    last_title: str
    """Of the last box: the whole path."""
    chain: str
    """The only box of a lattice without branches, of the tokens w and n."""
    complaints: list[Any]


TEXTS_FROM_LEFT_TO_RIGHT = """[...document.querySelectorAll('{}')]
    .map(e => [e.getBoundingClientRect().x, e.textContent])
    .sort((a, b) => a[0] - b[0]).map(([, text]) => text)"""
# Whether each edge of the path begins, up to a pixel, where a shape of it ends.
EDGES_MEET_SHAPES = """(() => {
    const boxes = selector => [...document.querySelectorAll(selector)].map(e => e.getBBox());
    const ends = boxes('.lattice .on').map(b => b.x + b.width);
    return boxes('.lattice path.on').every(b => ends.some(end => Math.abs(end - b.x) < 1));
})()"""


def write_pictured(folder: Path, reading: Reading) -> Path:
    """Write the page of two sentences: one with branches, and one with a single output, w n."""
    letters = dict(zip("wned", reading.letters, strict=True))
    branching = draw_first(reading.backwards)
    for node in branching["nodes"]:
        for branch in node["branches"]:
            branch[0] = letters.get(branch[0], branch[0])  # the token's name
    best = " ".join(letters[letter] for letter in "wed")
    table = Fixed({(): {W: 1.0}, (W,): {N: 1.0}, (W, N): {EOS: 1.0}})
    lattice = build_lattice(TableStepper(7), [table], [(W, N)])
    chain = drawing(lattice, ["a"], NAMES, EOS, reading.backwards)
    records = [
        record(0, "a", {best: 0.45, letters["w"]: 0.32}, "optimal"),
        record(1, "a", {"w n": 1.0}, "exhaustive"),
    ]
    return write(folder, records, [(0, branching), (1, chain)])


@pytest.fixture(scope="module", params=READINGS.values(), ids=READINGS)
def pictures(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Pictures:
    """The pictures of a script and a direction of writing."""

    def from_left_to_right(selector: str) -> list[str]:
        texts: list[str] = browser(TEXTS_FROM_LEFT_TO_RIGHT.format(selector))
        return texts

    browser.open(write_pictured(tmp_path_factory.mktemp("pictures"), request.param))
    browser("openSentence(1)")
    chain = browser("document.querySelector('.lattice g.box text').textContent")
    browser("openSentence(0)")
    return Pictures(
        reading=request.param,
        supports=from_left_to_right(".supports .taken bdi"),
        attention=from_left_to_right(".attention thead bdi"),
        boxes=from_left_to_right(".lattice g.box.on text"),
        ends=from_left_to_right(".lattice circle.on, .lattice g.end.on"),
        edges_meet_shapes=browser(EDGES_MEET_SHAPES),
        last_title=browser(
            "[...document.querySelectorAll('.lattice g.box.on title')].at(-1).textContent"
        ),
        chain=chain,
        complaints=browser.complaints(),
    )


def test_distributions_stand_in_the_order_of_the_text(pictures: Pictures) -> None:
    assert pictures.supports == pictures.reading.on_screen


def test_columns_of_attention_stand_in_the_order_of_the_text(pictures: Pictures) -> None:
    assert pictures.attention == pictures.reading.on_screen


def test_the_path_of_a_lattice_reads_as_the_text(pictures: Pictures) -> None:
    assert pictures.boxes == [text for text in pictures.reading.on_screen if text != "end"]


def test_the_end_of_a_path_is_where_the_text_ends(pictures: Pictures) -> None:
    left, right = (bool(text) for text in pictures.ends)
    on_screen = pictures.reading.on_screen
    assert (left, right) == (on_screen[0] == "end", on_screen[-1] == "end")


def test_edges_begin_where_shapes_end(pictures: Pictures) -> None:
    assert pictures.edges_meet_shapes


def test_the_title_of_the_last_box_has_the_whole_path(pictures: Pictures) -> None:
    w, _, e, d = pictures.reading.letters
    path = [d, e, w] if pictures.reading.backwards else [w, e, d]
    assert pictures.last_title.split("\n")[0].split() == path


def test_a_box_of_several_tokens_is_in_natural_order(pictures: Pictures) -> None:
    assert pictures.chain.split() == (["n", "w"] if pictures.reading.backwards else ["w", "n"])


def test_pictures_leave_nothing_in_the_console(pictures: Pictures) -> None:
    assert pictures.complaints == []
