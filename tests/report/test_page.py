"""The page as a file: it holds its data, from which nothing can escape, and loads nothing else."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.page_parts import to_json
from tests.report.pages import EVIL, RECORDS, TITLE, draw_first, write

# --- data ---


@given(st.text() | st.just(EVIL))
def test_data_cannot_leave_its_element(text: str) -> None:
    """Only these signs could end it, or a line of a script."""
    assert set(to_json({"text": text})).isdisjoint("<>&\u2028\u2029")


@given(st.text() | st.just(EVIL))
def test_data_is_read_as_it_was_written(text: str) -> None:
    assert json.loads(to_json({"text": text, "list": (text, 0.5)})) == {
        "text": text,
        "list": [text, 0.5],
    }


# --- the file ---


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
    return write(folder, RECORDS, [(0, draw_first())]).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(text: str) -> Elements:
    """The elements of that page."""
    parser = Elements()
    parser.feed(text)
    return parser


def test_the_page_has_its_records(parsed: Elements) -> None:
    assert json.loads(parsed.scripts["records"]) == RECORDS


def test_the_page_has_its_drawings(parsed: Elements) -> None:
    assert json.loads(parsed.scripts["drawing-0"]) == draw_first()


def test_the_data_of_the_page_add_no_script(parsed: Elements) -> None:
    """One script has the records, one the drawing, and one the code of the page."""
    assert [tag for tag, _ in parsed.elements].count("script") == 3


def test_the_title_of_the_page_is_escaped(text: str) -> None:
    """It stands in the head of the page and above its content."""
    assert text.count("A &lt;b&gt;report&lt;/b&gt;") == 2
    assert TITLE not in text


def test_links_of_the_page_stay_within_it(parsed: Elements) -> None:
    links = [
        (tag, attributes[name])
        for tag, attributes in parsed.elements
        for name in ("src", "href", "action")
        if name in attributes
    ]
    assert links == [("link", "data:,"), ("a", "#")]


def test_scripts_and_styles_of_the_page_load_nothing(text: str) -> None:
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}  # a name
    assert "@import" not in text
    assert "url(" not in text
