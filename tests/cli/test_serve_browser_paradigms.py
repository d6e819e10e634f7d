"""The page of a paradigm in a browser, and the pages of its cells."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.paradigm.texts import percent
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, copy_with_cells, running_server
from tests.report.browser import Browser

TITLE = "words" * 20  # longer than a line of a phone


@pytest.fixture
def paradigm_page(browser: Browser, inflection_model: Path, tmp_path: Path) -> Iterator[Page]:
    """The page of a paradigm with two cells."""
    model = copy_with_cells(inflection_model, tmp_path / "model", [("V",), ("V", "PST")])
    with (
        running_server(Answering(model, TASK), TITLE) as server,
        opened(browser, address_of(server)) as page,
    ):
        page.follow("language=german&source=ab&pos=V")
        browser.until("document.querySelectorAll('.paradigm td a').length === 2")
        yield page


def test_a_paradigm_fits_phones(paradigm_page: Page) -> None:
    paradigm_page.assert_fits_phones()


def test_the_fields_of_a_paradigm_are_labelled(paradigm_page: Page) -> None:
    paradigm_page.assert_labelled()


def test_a_page_rounds_probabilities_as_a_terminal_does(paradigm_page: Page) -> None:
    """None is rounded to 0 or 100 %."""
    probabilities = [1e-9, 0.005, 0.0051, 0.5, 0.9949, 0.995, 1 - 1e-9]
    shown = paradigm_page.value(f"{probabilities}.map(shareOfForm)")
    assert shown == [percent(probability) for probability in probabilities]


@pytest.fixture
def cell_page(paradigm_page: Page) -> Page:
    """The page of a cell, by the link of its form in the paradigm."""
    paradigm_page.run("document.querySelector('.paradigm td a').click()")
    paradigm_page.browser.until("/^ab german V/.test(at('title')?.textContent)")
    return paradigm_page


def test_the_page_of_a_cell_asks_for_tags_instead_of_a_paradigm(cell_page: Page) -> None:
    assert cell_page.value("[at('pos').value, at('tags').disabled]") == ["", False]


def test_the_page_of_a_cell_fits_phones(cell_page: Page) -> None:
    cell_page.assert_fits_phones()
