"""The summary of a report of samples: lines, samples, and samples that were cut."""

import pytest

from onmt_entmax.report.answers import Answer, Drawn
from onmt_entmax.report.sample_summary import SampleSummary
from onmt_entmax.search import Sample

COMPLETE = Drawn("x", Sample(tokens=(5,), log_prob=-1.0, complete=True))
CUT = Drawn("x", Sample(tokens=(5,), log_prob=-2.0, complete=False))


def summary_of(*answers: Answer) -> SampleSummary:
    summary = SampleSummary()
    for answer in answers:
        summary.add(answer)
    return summary


@pytest.fixture
def summary() -> SampleSummary:
    """The summary of a blank line, a line without a sample, and one with three samples."""
    return summary_of(
        Answer(0, "", samples=()),
        Answer(1, "a", samples=()),
        Answer(2, "b", samples=(COMPLETE, COMPLETE, CUT)),
    )


@pytest.mark.parametrize(
    ("key", "count"),
    [
        ("sentences", 2),
        ("blank_lines", 1),
        ("impossible", 1),
        ("samples", 3),
        # A sample that was cut is another output than the one that ended with the same tokens.
        ("distinct", 2),
        ("cut", 1),
    ],
)
def test_lines_and_samples_are_counted(summary: SampleSummary, key: str, count: int) -> None:
    assert summary.as_dict()[key] == count


def test_the_text_has_the_counts(summary: SampleSummary) -> None:
    assert summary.text() == (
        "2 sentences, 1 whose prefix is excluded, 3 samples (2 different in their sentence), "
        "1 cut by the length limit"
    )


def test_the_text_does_not_speak_of_prefixes_if_all_are_possible() -> None:
    assert "prefix" not in summary_of(Answer(0, "b", samples=(COMPLETE,))).text()
