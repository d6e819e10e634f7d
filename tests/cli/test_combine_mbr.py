"""`onmt-entmax combine --mbr`: minimum Bayes risk over the outputs of several reports."""

import json
from pathlib import Path

import pytest

from tests.cli.combining import Record, combine
from tests.cli.tables import write_table
from tests.reports import record


class TestMinimumBayesRisk:
    """It chooses `a b c e`, which differs little from the most probable output of either model."""

    @pytest.fixture
    def printed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        """What a choice by edit distance prints; its files are `both.out` and `both`, a report."""
        first = record("s", "exhaustive", ("a b c d", 0.8), ("a b c e", 0.2))
        second = record("s", "optimal", ("a x c e", 0.6), ("a b c e", 0.39), bound=0.01)
        reports = [write_table(tmp_path / "1", first), write_table(tmp_path / "2", second)]
        output, report = tmp_path / "both.out", tmp_path / "both"
        files = ("--reports", *reports, "--output", output, "--report", report)
        combine(*files, "--mbr", "edit_distance")
        return capsys.readouterr().out

    @pytest.fixture
    def averaged(self, printed: str, tmp_path: Path) -> Record:
        """The record of the average."""
        content: Record = json.loads((tmp_path / "both").read_text())
        return content

    @pytest.mark.usefixtures("printed")
    def test_chooses_the_output_that_is_near_the_others(self, tmp_path: Path) -> None:
        assert (tmp_path / "both.out").read_text() == "a b c e\n"

    def test_leaves_the_hypotheses_in_the_order_of_probability(self, averaged: Record) -> None:
        assert averaged["hypotheses"][0]["text"] == "a b c d"

    def test_has_the_expected_utility(self, averaged: Record) -> None:
        best = averaged["mbr"]["ranking"][0]
        itself, others = (0.2 + 0.39) / 2, (0.8 + 0.6) / 2  # probabilities
        similarity = 3 / 4  # of the others, which differ in one of four tokens
        assert best["expected_utility"] == pytest.approx(itself + others * similarity)

    def test_is_proven_in_spite_of_its_slack(self, averaged: Record) -> None:
        """The second model did not list all outputs."""
        unlisted = 0.01 / 2  # of the second model
        rounding = 1e-5
        assert averaged["mbr"]["slack"] == pytest.approx(unlisted + rounding)
        assert averaged["mbr"]["certificate"] == "proven"

    def test_is_counted(self, printed: str, tmp_path: Path) -> None:
        summary = json.loads((tmp_path / "both.summary.json").read_text())
        assert summary["mbr"]["proven"] == 1
        assert "minimum Bayes risk proven                   100.00 %" in printed
