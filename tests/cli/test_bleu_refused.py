"""`onmt-entmax bleu`: files that it refuses."""

from pathlib import Path

import pytest

from onmt_entmax.cli import bleu
from tests.cli.translations import SENTENCES, write_translations
from tests.in_process import refusal
from tests.reports import record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("missing", "missing: no such file", id="no file"),
        pytest.param(
            "report", "report: an -exactness_report, not text; name the file", id="report"
        ),
        pytest.param("short", "short: has 1 line, expected 60", id="too few lines"),
        pytest.param(
            "five", "has 300 lines, expected 60, as in the reference (n-best", id="n-best lists"
        ),
        pytest.param(
            "five --nbest 4", "expected 240, 4 for each of 60 lines of", id="shorter lists"
        ),
    ],
)
def test_a_file_that_is_not_a_translation_of_the_reference_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    Path("short").write_text("a\n")
    Path("report").write_text(f"{record('s', 'optimal', ('a', 0.5))}\n" * SENTENCES)
    Path("five").write_text("a\n" * 5 * SENTENCES)
    assert message in refusal(bleu.main, [*arguments.split(), "--reference", "ref"])


def test_a_second_reference_of_more_lines_is_not_a_list_of_hypotheses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it has twice the lines of the first."""
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    Path("double").write_text("a\n" * 2 * SENTENCES)
    line = refusal(bleu.main, ["one", "--reference", "ref", "double"])
    assert line.endswith("double: has 120 lines, expected 60, as in the reference ref")
