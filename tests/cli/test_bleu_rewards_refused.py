"""`onmt-entmax bleu --tune length_reward`: reports and options that it refuses."""

import math
from pathlib import Path

import pytest

from onmt_entmax.cli import bleu
from tests.cli.rewards import Record, record, write_report
from tests.in_process import refusal


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        pytest.param(
            {"penalties": {"length_penalty": "avg"}},
            [],
            "report:1: not a record of `translate` without penalties",
            id="penalty",
        ),
        pytest.param(
            {"hypotheses": [{"text": "a", "prob": 0.5}]},
            [],
            "report:1: not a record of `translate` without penalties",
            id="no log-probability",
        ),
        pytest.param({"gap": math.inf}, [], "report:1: not JSON", id="infinity"),
        pytest.param(
            {"mbr": {}}, [], "report:1: not a record of an -exactness_report", id="empty decision"
        ),
        pytest.param(
            {"hypotheses": []},
            [],
            "report: has no n-best lists: translate with -n_best 30",
            id="no hypotheses",
        ),
        pytest.param({}, ["--metrics", "ter"], "and no --nbest, --report", id="other measure"),
        pytest.param({}, ["one"], "--tune takes one report as SYSTEM", id="two systems"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    tmp_path: Path, changes: Record, more: list[str], message: str
) -> None:
    report, *reference = write_report(tmp_path, record(**changes))
    output = tmp_path / "measured.json"
    command = [report, *more, *reference, "--tune", "length_reward", "--output", output]
    assert message in refusal(bleu.main, command)
    assert not output.exists()


def test_a_number_too_large_for_a_float_is_refused(tmp_path: Path) -> None:
    """Python's json cannot write 1e400, which JSON allows."""
    report, *reference = write_report(tmp_path, record(gap="1e400"))
    report.write_text(report.read_text().replace('"1e400"', "1e400"))
    command = [report, *reference, "--tune", "length_reward"]
    assert "report:1: not JSON" in refusal(bleu.main, command)


def test_a_record_without_the_length_of_its_source_is_refused(tmp_path: Path) -> None:
    """A reward depends on that length."""
    incomplete = record()
    del incomplete["source_tokens"]
    command = [*write_report(tmp_path, incomplete), "--tune", "length_reward"]
    message = "report:1: not a record of `translate` without penalties"
    assert message in refusal(bleu.main, command)
