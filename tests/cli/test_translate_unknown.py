"""`translate` of a text with tokens that training never saw: they are named and counted."""

from pathlib import Path

import pytest

from tests.cli.translating import Translated, translate


@pytest.fixture(scope="module")
def translated(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Two lines; two of the four tokens are unknown, both in the second."""
    return translate(toy_run, tmp_path_factory.mktemp("unknown"), "a b\nfed x\n")


def test_a_warning_has_the_share_of_unknown_tokens(translated: Translated) -> None:
    assert "2 of 4 source tokens (50.00 %), in 1 of 2 lines, not" in translated.printed


def test_a_warning_names_unknown_tokens(translated: Translated) -> None:
    assert "'fed', 'x'" in translated.printed


def test_a_record_counts_the_unknown_tokens_of_its_line(translated: Translated) -> None:
    unknown = [record.get("unknown") for record in translated.records]
    assert unknown == [None, {"fed": 1, "x": 1}]


def test_the_summary_counts_unknown_tokens(translated: Translated) -> None:
    summary = translated.summary
    assert (summary["unknown_tokens"], summary["unknown_percent"]) == (2, 50.0)
