"""The summary of a report: sentences by what is proven, abstentions, scores."""

import pytest

from onmt_entmax.report.answers import Answer
from onmt_entmax.report.summary import Summary
from tests.report.answers import answer, penalised_answer
from tests.report.writing import written

KINDS = ("single_hypothesis_percent", "several_hypotheses_percent", "impossible", "unfinished")


@pytest.mark.parametrize(
    ("sentence", "kinds"),
    [
        pytest.param(answer("exhaustive", 1), ["single_hypothesis_percent"], id="one possible"),
        pytest.param(
            answer("exhaustive", 2), ["several_hypotheses_percent"], id="several possible"
        ),
        pytest.param(answer("exhaustive", 0), ["impossible"], id="none possible"),
        pytest.param(answer("none", 0, unfinished="x"), ["unfinished"], id="cut"),
        pytest.param(answer("none", 0), ["unfinished"], id="not even a prefix"),
        pytest.param(answer("exhaustive", 1, excluded=0.3), [], id="others excluded"),
        pytest.param(answer("optimal", 1), [], id="optimal"),
    ],
)
def test_a_sentence_counts_once(sentence: Answer, kinds: list[str]) -> None:
    summary = Summary()
    summary.add(sentence)
    rates = summary.as_dict()
    assert [kind for kind in KINDS if rates[kind]] == kinds


@pytest.mark.parametrize(
    ("least_probability", "abstained"),
    [
        pytest.param(0.0, 0, id="all are written"),
        pytest.param(0.5, 1, id="less than that of the text"),
        pytest.param(0.51, 2, id="more than that of the text"),
    ],
)
def test_the_summary_counts_abstentions(least_probability: float, abstained: int) -> None:
    assert written(least_probability).summary.as_dict()["abstained"] == abstained


def test_a_blank_line_is_counted_apart_from_the_sentences() -> None:
    counts = written(0.0).summary.as_dict()
    assert (counts["sentences"], counts["blank_lines"]) == (2, 1)


@pytest.mark.parametrize(
    ("least_probability", "text"), [(0.5, "1 abstained"), (0.51, "2 abstained")]
)
def test_the_summary_names_abstentions(least_probability: float, text: str) -> None:
    assert text in written(least_probability).summary.text()


def test_a_summary_without_abstentions_does_not_speak_of_them() -> None:
    assert "abstained" not in written(0.0).summary.text()


def test_the_summary_speaks_of_scores_under_penalties() -> None:
    summary = Summary()
    summary.add(penalised_answer())
    assert "highest scored output proven (or the above)" in summary.text()
