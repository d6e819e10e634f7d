"""A page of `onmt-entmax serve` in a browser, and what tests do to its form.

Methods name a field of the form by its id in the page, such as `source`. Scripts run in the page,
and may use its function `at`, which returns the element with an id, and its constant `model`, the
description of the model that is served.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.report.browser import DESKTOP, PHONE, Browser

# Scripts that return the HTML of fields without a label, and of elements that a phone cuts off.
UNLABELLED = """[...document.querySelectorAll('input, select, textarea, [role=listbox], .scroll')]
    .filter(e => !(e.labels?.[0]?.textContent || e.ariaLabel)).map(e => e.outerHTML)"""
BEYOND_THE_SCREEN = """[...document.querySelectorAll('main *')]
    .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML)"""


class Page:
    """An open page."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, which JSON must be able to hold."""
        return self.browser(expression)

    def run(self, statement: str) -> None:
        """Run a statement of JavaScript, whose value does not matter."""
        self.browser(f"(() => {{ {statement} }})()")

    def fill(self, field: str, text: str) -> None:
        """Put a text into a field; the page does not notice."""
        self.run(f"at({json.dumps(field)}).value = {json.dumps(text)}")

    def type(self, field: str, text: str) -> None:
        """Put a text into a field as if somebody had typed it, so that the page notices."""
        self.fill(field, text)
        self.run(f"at({json.dumps(field)}).dispatchEvent(new Event('input', {{bubbles: true}}))")

    def follow(self, query: str) -> None:
        """Follow a link to a query, such as `language=german&source=ab`."""
        self.run(f"location.hash = {json.dumps(query)}")

    def wait_for_title(self, title: str) -> None:
        """Wait for the answer with this title."""
        self.browser.until(f"at('title')?.textContent === {json.dumps(title)}")

    def wait_for_state(self, text: str) -> None:
        """Wait until the line below the form has this text."""
        self.browser.until(f"at('state').textContent === {json.dumps(text)}")

    def assert_fits_phones(self) -> None:
        """Fail unless a phone shows the whole page."""
        self.browser.size(*PHONE)
        try:
            assert self.value("document.documentElement.scrollWidth") == PHONE.width
            assert self.value(BEYOND_THE_SCREEN) == []
        finally:
            self.browser.size(*DESKTOP)

    def assert_labelled(self) -> None:
        """Fail unless all fields have a name for screen readers."""
        assert self.value(UNLABELLED) == []


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page; fail if the browser has complained of anything but refused queries."""
    browser.open(address)
    yield Page(browser)
    complaints = [str(complaint) for complaint in browser.complaints()]
    unexpected = [text for text in complaints if "status of 400" not in text]
    assert not unexpected, unexpected
