"""The page: its data, and its behaviour in a headless browser."""

import json
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli.report import coverage_curve, with_references
from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page import drawing, to_json, write_page
from tests.report.browser import Browser
from tests.search.tables import DRAW, EOS, D, E, Fixed, N, TableStepper, W

NAMES = ["<s>", "</s>", "w", "n", "e", "d", "x"]
EVIL = "</script><script>hacked = 1</script> <!-- <b>&amp;\u2028"


def record(number: int, source: str, texts: dict[str, float], level: str, **more: Any) -> dict:
    """Return a record of a report; the texts have their probabilities."""
    hypotheses = [
        {"text": text, "prob": prob, "log_prob": math.log(prob)} for text, prob in texts.items()
    ]
    base = {"id": number, "source": source, "certificate": level, "bound": 0.0, "dropped": 0}
    base |= {"mass": sum(texts.values()), "truncated": 0, "excluded": 0.0, "finished": len(texts)}
    return {**base, "hypotheses": hypotheses, **more}


RECORDS = [
    record(0, "+PST d r a w", {"w e d": 0.45, "w n": 0.32}, "optimal", bound=0.15, dropped=2),
    record(1, "Der Baum", {"the tree": 0.7, "a tree": 0.3}, "exhaustive"),
    record(2, EVIL, {EVIL: 0.9}, "none", bound=0.5),
    record(3, "s a t", {"s i t": 1.0}, "exhaustive"),
    record(4, "z", {}, "none", unfinished="a a a a"),
]


def draw_first(backwards: bool = False) -> dict[str, Any]:
    """Return the drawing of the first record."""
    lattice = build_lattice(TableStepper(7), [DRAW], [(W, E, D), (W, N)])
    content: dict[str, Any] = drawing(lattice, ["+PST", "d"], NAMES, EOS, backwards)
    for position, node in enumerate(content["nodes"]):
        node["attention"] = [0, 0.25, 1, 0.75] if position == 1 else [1, 1.0]
    return content


def page(
    folder: Path, records: list[dict], drawings: list[tuple[int, Any]], curve: Any = None
) -> Path:
    """Write a page; return its path."""
    path = folder / "page.html"
    with open(path, "w", encoding="utf-8") as file:
        write_page(file, "A <b>report</b>", records, drawings, curve=curve)
    return path


def test_a_drawing_names_tokens_and_says_where_branches_lead() -> None:
    """A branch is (token, probability, node), or (None, probability, hypothesis) at an end."""
    lattice = build_lattice(TableStepper(7), [DRAW], [(W, N), (W,)])
    content = drawing(lattice, ["a"], NAMES, EOS, backwards=False)
    assert content["source"] == ["a"]
    _, second, third = content["nodes"]
    assert second["branches"] == [["e", 0.6], ["n", 0.32, 2], [None, 0.08, 1]]
    assert third == {"branches": [[None, 1.0, 0]]}


def test_a_drawing_has_attention_and_the_sum_of_unlisted_branches() -> None:
    """The last number of branches is that of the unlisted ones."""
    lattice = build_lattice(TableStepper(7, attention=True), [DRAW], [(W, E, D), (W, N)], limit=1)
    first, second, *_ = drawing(lattice, ["a"], NAMES, EOS, backwards=False)["nodes"]
    assert first == {"branches": [["w", 1.0, 1]], "attention": []}
    assert second["branches"] == [["e", 0.6, 3], ["n", 0.32, 2]]
    assert second["others"] == [0.08, 1]
    assert second["attention"] == [0, 12.0]


@given(st.text() | st.just(EVIL))
def test_data_cannot_leave_its_element(text: str) -> None:
    written = to_json({"text": text, "list": (text, 0.5)})
    assert not set("<>&\u2028\u2029") & set(written)
    again = json.loads(written)
    assert again["text"] == text
    assert again["list"] == [text, 0.5]


class Elements(HTMLParser):
    """The elements of a page, and the text inside scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str | None, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag == "script" and data.strip():
            name = attributes.get("id")
            self.scripts[name] = self.scripts.get(name, "") + data


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of all records, of which the first is drawn."""
    folder = tmp_path_factory.mktemp("page")
    return page(folder, RECORDS, [(0, draw_first())]).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    return parser


def test_the_page_has_its_data(parsed: Elements) -> None:
    assert [tag for tag, _ in parsed.elements].count("script") == 3
    assert json.loads(parsed.scripts["records"]) == RECORDS
    assert json.loads(parsed.scripts["drawing-0"]) == draw_first()


def test_the_title_of_the_page_is_a_text(text: str) -> None:
    assert text.count("A &lt;b&gt;report&lt;/b&gt;") == 2


def test_the_page_refers_to_nothing_outside(text: str, parsed: Elements) -> None:
    links = [
        (tag, attributes[name])
        for tag, attributes in parsed.elements
        for name in ("src", "href", "action")
        if name in attributes
    ]
    assert links == [("link", "data:,"), ("a", "#")]
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}  # a name
    assert "@import" not in text
    assert "url(" not in text


# --- in the browser ----------------------------------------------------------------------


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    browser.open(page(tmp_path, RECORDS, [(0, draw_first())]))
    yield browser
    assert browser.complaints() == []


# Lines count from 1.
SHOWN = "[...document.querySelectorAll('#rows .row .id')].map(e => parseInt(e.textContent) - 1)"


def type_query(browser: Browser, text: str) -> list[int]:
    browser(f"(at('query').value = {text!r}, at('query').dispatchEvent(new Event('input')))")
    shown: list[int] = browser(SHOWN)
    return shown


def test_scores_are_not_called_probabilities(browser: Browser, tmp_path: Path) -> None:
    scored = record(0, "a", {"b": 0.2}, "optimal")
    scored["hypotheses"][0]["score"] = 1.0
    browser.open(page(tmp_path, [scored], []))
    assert "100.0 % highest scored output proven" in browser("at('summary').textContent")


def test_a_page_shows_its_sentences_in_order(opened: Browser) -> None:
    assert opened(SHOWN) == [0, 1, 2, 3, 4]


def test_texts_of_sentences_are_no_html(opened: Browser) -> None:
    cells = "[...document.querySelectorAll('#row-2 .source, #row-2 .best')].map(e => e.textContent)"
    assert opened(cells) == [" ".join(EVIL.split())] * 2
    assert opened("typeof hacked") == "undefined"
    assert opened("document.querySelectorAll('h1 b, .row b, .row script').length") == 0
    assert opened("document.title") == "A <b>report</b>"


def test_a_page_has_a_summary(opened: Browser) -> None:
    assert "60.0 % most probable output proven" in opened("at('summary').textContent")


def test_an_unfinished_output_is_marked(opened: Browser) -> None:
    best = opened("document.querySelector('#row-4 .best').textContent")
    assert best == "unfinished: a a a a"


def test_sentences_of_a_certificate_can_be_hidden(opened: Browser) -> None:
    opened("document.querySelector('[data-kind=none]').click()")
    assert opened(SHOWN) == [0, 1, 3]
    assert opened("at('count').textContent") == "3 of 5"
    opened("document.querySelector('[data-kind=exhaustive]').click()")
    assert opened(SHOWN) == [0]
    opened("document.querySelector('[data-kind=exhaustive]').click()")
    assert opened(SHOWN) == [0, 1, 3]


def test_sentences_can_be_searched(opened: Browser) -> None:
    """In sources and all hypotheses, with words in any order and symbols without spaces."""
    assert type_query(opened, "TREE") == [1]
    assert type_query(opened, "tree der") == [1]
    assert type_query(opened, "wn") == [0]  # w n, a hypothesis that is not the best
    assert type_query(opened, "d r a") == [0]
    assert type_query(opened, "nothing has this") == []
    assert opened("at('empty').hidden") is False
    assert type_query(opened, "") == [0, 1, 2, 3, 4]


def test_a_search_is_among_the_sentences_that_are_not_hidden(opened: Browser) -> None:
    opened("document.querySelector('[data-kind=none]').click()")
    assert type_query(opened, "tree") == [1]
    assert type_query(opened, "") == [0, 1, 3]


class Reading(NamedTuple):
    """A script and a direction of writing, and how pictures show the model's w, e, d and end."""

    letters: str
    """Of the model's w, n, e and d."""
    backwards: bool
    """Whether the model writes the last token first."""
    on_screen: list[str]
    """From left to right."""


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


def write_pictured(folder: Path, reading: Reading) -> Path:
    """Write the page of two sentences: one with branches, and one with a single output, w n."""
    letters = dict(zip("wned", reading.letters, strict=True))
    branching = draw_first(reading.backwards)
    for branch in (branch for node in branching["nodes"] for branch in node["branches"]):
        branch[0] = letters.get(branch[0], branch[0])
    best = " ".join(letters[letter] for letter in "wed")
    table = Fixed({(): {W: 1.0}, (W,): {N: 1.0}, (W, N): {EOS: 1.0}})
    lattice = build_lattice(TableStepper(7), [table], [(W, N)])
    chain = drawing(lattice, ["a"], NAMES, EOS, reading.backwards)
    records = [
        record(0, "a", {best: 0.45, letters["w"]: 0.32}, "optimal"),
        record(1, "a", {"w n": 1.0}, "exhaustive"),
    ]
    return page(folder, records, [(0, branching), (1, chain)])


@pytest.fixture(scope="module", params=READINGS.values(), ids=READINGS)
def pictures(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Pictures:
    def from_left_to_right(selector: str) -> list[str]:
        texts: list[str] = browser(TEXTS_FROM_LEFT_TO_RIGHT.format(selector))
        return texts

    browser.open(write_pictured(tmp_path_factory.mktemp("pictures"), request.param))
    browser("openSentence(1)")
    chain = browser("document.querySelector('.lattice g.box text').textContent")
    browser("openSentence(0)")
    right_edges = (
        "[...document.querySelectorAll('.lattice .on')]"
        ".map(e => e.getBBox()).map(b => b.x + b.width)"
    )
    edges = "[...document.querySelectorAll('.lattice path.on')].map(e => e.getBBox().x)"
    return Pictures(
        reading=request.param,
        supports=from_left_to_right(".supports .taken bdi"),
        attention=from_left_to_right(".attention thead bdi"),
        boxes=from_left_to_right(".lattice g.box.on text"),
        ends=from_left_to_right(".lattice circle.on, .lattice g.end.on"),
        edges_meet_shapes=browser(
            f"{edges}.every(x => {right_edges}.some(right => Math.abs(right - x) < 1))"
        ),
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
    (left, right) = pictures.ends
    if pictures.reading.on_screen[0] == "end":
        assert left
        assert not right
    else:
        assert right
        assert not left


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


@pytest.fixture
def judged(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page of a report with references: right, wrong, excluded, right, abstained, blank."""
    records = [dict(each) for each in RECORDS]
    records[4] |= {"abstained": True}
    records.append(record(5, " ", {}, "none"))
    records = with_references(records, ["w n", "the  tree", "b", "s a t", "a a", ""])
    curve = coverage_curve(records, None)
    browser.open(page(tmp_path, records, [(0, draw_first())], curve))
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
    judged("document.querySelector('[data-kind=right]').click()")
    assert judged(SHOWN) == [0, 2, 3, 4, 5]
    judged("document.querySelector('[data-kind=blank]').click()")
    assert judged(SHOWN) == [0, 2, 3, 4]


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
    """Of five sentences four are kept, one of which is right; a blank line is none."""
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


@pytest.mark.parametrize("script", ["0", "openSentence(0)"], ids=["list", "sentence"])
def test_a_phone_shows_the_page_without_overflow(judged: Browser, script: str) -> None:
    judged.size(390, 844)
    judged(script)
    assert judged("document.documentElement.scrollWidth") == 390
    beyond = """[...document.querySelectorAll('main *')]
        .filter(e => !e.closest('.scroll, .body, .head') && e.getBoundingClientRect().right > 391)
        .map(e => e.outerHTML)"""
    assert judged(beyond) == []
    # No heading of a column is cut, and a row has room for its texts.
    cut = """[...document.querySelectorAll('.head > div, #rows .row')]
        .filter(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight)
        .map(e => e.outerHTML)"""
    assert judged(cut) == []
    judged.size(1280, 900)
