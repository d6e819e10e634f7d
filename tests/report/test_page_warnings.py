"""Warnings of a sentence's source tokens on the page of a report, in a browser."""

from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.pages import record, write

WARNING = "document.querySelector('#sentence p.alarm')"

# The beginnings of the warnings about the token `a`, by the field of the record that counts it.
WARNINGS = {
    "unknown": "1 of 3 source tokens not in the vocabulary",
    "unseen": "1 of 3 source tokens not seen in training for x: a",  # x is the language
    "copied": "1 of 3 source tokens rare or new in training",
}


def open_sentence(browser: Browser, folder: Path, kind: str) -> None:
    """Open a page at a sentence of three source tokens in the language x, with a warning.

    Args:
        browser: opens the page.
        folder: receives the page.
        kind: the kind of the warning, of WARNINGS.
    """
    unusual = {kind: {"a": 1}}  # occurrences by token
    sentence = record(0, "lang=x a b", {"c": 1.0}, "exhaustive", source_tokens=3, **unusual)
    browser.open(write(folder, [sentence]))
    browser("(openSentence(0), null)")


@pytest.mark.parametrize(("kind", "beginning"), WARNINGS.items(), ids=WARNINGS)
def test_a_warning_says_what_is_unusual_about_source_tokens(
    browser: Browser, tmp_path: Path, kind: str, beginning: str
) -> None:
    open_sentence(browser, tmp_path, kind)
    assert browser(f"{WARNING}.textContent").startswith(beginning)


@pytest.mark.parametrize("kind", WARNINGS)
def test_a_warning_is_visible(browser: Browser, tmp_path: Path, kind: str) -> None:
    open_sentence(browser, tmp_path, kind)
    assert browser(
        f"{WARNING}.checkVisibility({{opacityProperty: true, visibilityProperty: true}})"
    )


@pytest.mark.parametrize("kind", WARNINGS)
def test_a_warning_has_the_color_of_warnings(browser: Browser, tmp_path: Path, kind: str) -> None:
    """A warning has its kind as a class, for which the style sheet may have another rule.

    `unseen` was once also the class of a line for screen readers, which is transparent.
    """
    open_sentence(browser, tmp_path, kind)
    color = browser(f"getComputedStyle({WARNING}).color")
    # The color of warnings, on the same element, so that the browser writes it in the same form.
    browser(f"{WARNING}.style.color = 'var(--none)'")
    assert color == browser(f"getComputedStyle({WARNING}).color")
