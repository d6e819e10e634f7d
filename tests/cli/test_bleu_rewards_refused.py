"""`onmt-entmax bleu --tune length_reward`: reports and options that it refuses."""

import math
from pathlib import Path

import pytest

from onmt_entmax.cli import bleu
from tests.cli.rewards import Record, record, write_report
from tests.in_process import refusal

NO_RECORD = "report:1: not a record of `translate` without penalties"


def refused(folder: Path, judged: Record, *options: str) -> str:
    """Return the error about a report of one record, of which no measures must be written.

    Args:
        folder: receives the report.
        judged: its record.
        options: further arguments of the command.
    """
    report, *reference = write_report(folder, judged)
    output = folder / "measured.json"
    command = [report, *options, *reference, "--tune", "length_reward", "--output", output]
    error = refusal(bleu.main, command)
    assert not output.exists()
    return error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"penalties": {"length_penalty": "avg"}}, NO_RECORD, id="penalty"),
        pytest.param(
            {"hypotheses": [{"text": "a", "prob": 0.5}]}, NO_RECORD, id="no log-probability"
        ),
        pytest.param({"gap": math.inf}, "report:1: not JSON", id="infinity"),
        pytest.param(
            {"mbr": {}}, "report:1: not a record of an -exactness_report", id="empty decision"
        ),
        pytest.param(
            {"hypotheses": []},
            "report: has no n-best lists: translate with -n_best 30",
            id="no hypotheses",
        ),
    ],
)
def test_a_report_without_what_rewards_need_is_refused(
    tmp_path: Path, changes: Record, message: str
) -> None:
    assert message in refused(tmp_path, record(**changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--metrics", "ter"], "and no --nbest, --report", id="another measure"),
        pytest.param(["one"], "--tune takes one report as SYSTEM", id="two systems"),
    ],
)
def test_options_that_do_not_go_with_tuning_are_refused(
    tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in refused(tmp_path, record(), *options)


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
    assert NO_RECORD in refused(tmp_path, incomplete)
