"""Warnings of a sentence on the page of a report, in a browser."""

from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.pages import record, write

TRANSPARENT = "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize(
    ("kind", "warning"),
    [
        pytest.param(
            "unknown", "1 of 3 source tokens not in the vocabulary", id="outside the vocabulary"
        ),
        pytest.param(
            "unseen", "1 of 3 source tokens not seen in training for x: a", id="in other languages"
        ),
        pytest.param("copied", "1 of 3 source tokens rare or new in training", id="copied"),
    ],
)
def test_a_warning_of_unusual_tokens_is_visible(
    browser: Browser, tmp_path: Path, kind: str, warning: str
) -> None:
    unusual = {kind: {"a": 1}}
    sentence = record(0, "lang=x a b", {"c": 1.0}, "exhaustive", source_tokens=3, **unusual)
    browser.open(write(tmp_path, [sentence]))
    browser("(openSentence(0), null)")
    text, color = browser(
        "(e => [e.textContent, getComputedStyle(e).color])"
        "(document.querySelector('#sentence p.alarm'))"
    )
    assert text.startswith(warning)
    assert color != TRANSPARENT
