"""The list of sentences on a page that is open in a browser: reading it, and filtering it."""

from tests.report.browser import Browser


def shown(browser: Browser) -> list[int]:
    """Return the positions, from 0, of the sentences that the list shows."""
    # The page counts from 1.
    positions: list[int] = browser(
        "[...document.querySelectorAll('#rows .row .id')].map(e => parseInt(e.textContent) - 1)"
    )
    return positions


def toggle(browser: Browser, kind: str) -> None:
    """Hide the sentences of a kind, such as a level, or show them again."""
    browser(f"document.querySelector('[data-kind={kind}]').click()")
