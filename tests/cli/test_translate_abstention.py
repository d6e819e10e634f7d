"""`translate -abstain`: improbable outputs are left out, for a person to translate."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.translating import Translated, translate
from tests.commands import succeed

LEFT_OUT = 10  # outputs


class Abstained(NamedTuple):
    """A translation, and the least probability, below which ten outputs are left out."""

    least: float
    translated: Translated


@pytest.fixture(scope="module")
def abstained(
    toy_run: Path, toy_source: str, tmp_path_factory: pytest.TempPathFactory
) -> Abstained:
    """The development text and a blank line."""
    folder = tmp_path_factory.mktemp("abstained")
    probs = sorted(best["prob"] for best in translate(toy_run, folder, toy_source).best)
    least = (probs[LEFT_OUT - 1] + probs[LEFT_OUT]) / 2
    options = ("-abstain", least, "-report_align")
    return Abstained(least, translate(toy_run, folder, f"{toy_source}\n", *options))


def test_outputs_below_a_probability_are_left_out(abstained: Abstained) -> None:
    *lines, blank = abstained.translated.lines
    *records, _ = abstained.translated.records
    best = [record["hypotheses"][0] for record in records]
    assert lines == [output["text"] if output["prob"] >= abstained.least else "" for output in best]
    assert blank == ""


def test_outputs_that_are_left_out_have_no_alignment(abstained: Abstained) -> None:
    alignments = (abstained.translated.folder / "out.align").read_text().splitlines()
    assert [line != "" for line in alignments] == [
        line != "" for line in abstained.translated.lines
    ]


def test_a_report_says_what_was_left_out(abstained: Abstained) -> None:
    *records, blank = abstained.translated.records
    for record in records:
        is_below = record["hypotheses"][0]["prob"] < abstained.least
        assert record.get("abstained", False) == is_below
    assert "abstained" not in blank


def test_a_summary_counts_what_was_left_out(abstained: Abstained) -> None:
    summary = abstained.translated.summary
    assert (summary["abstained"], summary["blank_lines"]) == (LEFT_OUT, 1)


def test_bleu_has_the_share_of_the_outputs_that_were_not_left_out(
    abstained: Abstained, trained: Path, tmp_path: Path
) -> None:
    """The blank line does not count as an output."""
    reference, scores = tmp_path / "reference", tmp_path / "scores.json"
    reference.write_text((trained / "valid.tgt").read_text() + "\n")
    folder = abstained.translated.folder
    options = ["--report", folder / "report.jsonl", "--tokenize", "none", "--output", scores]
    succeed("onmt_entmax", "bleu", folder / "out", "--reference", reference, *options)
    shares = {row["rule"]: row["share"] for row in json.loads(scores.read_text())["coverage"]}
    outputs = len(abstained.translated.lines) - 1
    assert shares["all"] == pytest.approx(1 - LEFT_OUT / outputs)
