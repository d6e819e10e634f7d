"""`onmt-entmax report --reference`: what is right on the page, and the curve of its coverage."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli import report
from tests.cli.report_pages import arguments_in, write_page, write_report
from tests.commands import json_lines
from tests.in_process import refusal


class Judged(NamedTuple):
    """A report, and references that are its best outputs, except for the first."""

    run: Path
    records: list[dict[str, Any]]
    references: list[str]
    options: list[str]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    write_report(tmp_path)
    records = json_lines(tmp_path / "report.jsonl")
    best = [record["hypotheses"][0]["text"] if record["hypotheses"] else "" for record in records]
    references = ["wrong", *best[1:]]
    (tmp_path / "ref").write_text("".join(f"{text}\n" for text in references))
    return Judged(
        tmp_path, records, references, ["--reference", str(tmp_path / "ref"), "-details", "0"]
    )


@pytest.mark.parametrize("bleu", [[], ["-bleu", "none"]], ids=["accuracy", "BLEU"])
def test_references_show_what_is_right(judged: Judged, bleu: list[str]) -> None:
    records = write_page(judged.run, *judged.options, *bleu).data["records"]
    assert records == [
        {**record, "right": right, "reference": reference}
        for record, right, reference in zip(
            judged.records, [False, True, True, True], judged.references, strict=True
        )
    ]


def test_a_curve_begins_with_the_accuracy_of_all(judged: Judged) -> None:
    """A blank line does not count."""
    curve = write_page(judged.run, *judged.options).data["coverage"]
    assert curve["measure"] == "Accuracy (%)"
    assert curve["points"][0]["rule"] == "all"
    assert curve["points"][0]["quality"] == pytest.approx(200 / 3)


def test_a_curve_may_be_of_bleu(judged: Judged) -> None:
    curve = write_page(judged.run, *judged.options, "-bleu", "none").data["coverage"]
    assert curve["measure"] == "BLEU none"
    assert curve["points"][0]["rule"] == "all"


def test_references_of_another_length_are_refused(judged: Judged) -> None:
    (judged.run / "ref").write_text("one\n")
    line = refusal(report.main, arguments_in(judged.run, *judged.options), progress=True)
    assert "ref: 1 line, but" in line
