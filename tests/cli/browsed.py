"""A page of `onmt-entmax serve` in a browser, and what tests do to its form.

The scripts run in the page. `at(id)` and `model` are its own: an element, and what the page knows
of the model. A script that ends in `, 0` has a value of no interest, which JSON may not have.
"""

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

    def value(self, script: str) -> Any:
        return self.browser(script)

    def run(self, statement: str) -> None:
        self.browser(f"({statement}, 0)")

    def fill(self, field: str, text: str) -> None:
        """Put a text into a field, without the event that typing has."""
        self.run(f"at('{field}').value = '{text}'")

    def notify(self, field: str) -> None:
        """Tell the page that a field was typed into."""
        self.run(f"at('{field}').dispatchEvent(new Event('input', {{bubbles: true}}))")

    def type(self, field: str, text: str) -> None:
        self.fill(field, text)
        self.notify(field)

    def follow(self, query: str) -> None:
        """Follow a link to a query."""
        self.run(f"location.hash = '#{query}'")

    def wait_for_title(self, title: str) -> None:
        """Wait for the answer with this title."""
        self.browser.until(f"at('title')?.textContent === '{title}'")

    def wait_for_state(self, text: str) -> None:
        self.browser.until(f"at('state').textContent === '{text}'")

    def assert_fits_phones(self) -> None:
        """Fail unless a phone shows the whole page, and screen readers name all fields."""
        self.browser.size(*PHONE)
        assert self.value("document.documentElement.scrollWidth") == PHONE.width
        assert self.value(BEYOND_THE_SCREEN) == []
        assert self.value(UNLABELLED) == []
        self.browser.size(*DESKTOP)


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page; fail if the browser has complained of anything but refused queries."""
    browser.open(address)
    yield Page(browser)
    complaints = [str(complaint) for complaint in browser.complaints()]
    assert not [text for text in complaints if "status of 400" not in text]
