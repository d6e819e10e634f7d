"""Records of a report: their keys, texts, slack and scores."""

import io
import json
import math
from dataclasses import replace
from typing import Any

import pytest

from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter, OutputForm
from onmt_entmax.search import Penalties
from tests.report.answers import (
    TEXTS_WITH_LINE_ENDS,
    answer,
    answer_with_line_ends,
    decoded,
    penalised_answer,
)
from tests.report.writing import written


def record_of(answer: Answer) -> dict[str, Any]:
    """Return the record as the report has it: JSON without infinity and NaN."""
    report = io.StringIO()
    AnswerWriter(io.StringIO(), OutputForm(), Summary(), report=report).write(answer)
    record: dict[str, Any] = json.loads(report.getvalue(), parse_constant=pytest.fail)
    return record


@pytest.mark.parametrize(
    ("least_probability", "abstained"),
    [
        pytest.param(0.0, [False, False, False], id="all are written"),
        pytest.param(0.5, [False, False, True], id="less than that of the text"),
        pytest.param(0.51, [True, False, True], id="more than that of the text"),
    ],
)
def test_a_record_says_that_it_abstains(least_probability: float, abstained: list[bool]) -> None:
    """A blank line is not an abstention."""
    records = written(least_probability).records
    assert [record.get("abstained", False) for record in records] == abstained


@pytest.mark.parametrize("least_probability", [0.0, 0.5, 0.51])
def test_a_record_keeps_its_hypotheses(least_probability: float) -> None:
    records = written(least_probability).records
    assert [len(record["hypotheses"]) for record in records] == [2, 0, 0]
    assert records[2]["unfinished"] == "x"


def test_a_blank_line_has_the_keys_of_a_searched_one() -> None:
    searched, blank = record_of(answer("exhaustive", 2)), record_of(Answer(1, " "))
    assert blank.keys() == searched.keys() - {"source_tokens"}


def test_a_record_has_the_texts_as_they_are() -> None:
    hypotheses = record_of(answer_with_line_ends())["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == TEXTS_WITH_LINE_ENDS


# --- slack: what the probability of a text may have beyond its listed hypotheses ---

UNLISTED = 1 - math.exp(-1) - math.exp(-2)  # beside hypotheses of log-probabilities -1 and -2


@pytest.mark.parametrize("level", ["exhaustive", "optimal"])
def test_without_merged_texts_there_is_no_slack(level: str) -> None:
    assert "slack" not in answer_record(answer(level, 2))


def test_if_all_hypotheses_are_listed_there_is_no_slack() -> None:
    assert "slack" not in answer_record(replace(answer("exhaustive", 2), merged=True))


def test_a_merged_text_may_have_all_probability_that_was_not_found() -> None:
    record = answer_record(replace(answer("optimal", 2), merged=True))
    assert record["slack"] == pytest.approx(UNLISTED, abs=1e-4)


def test_a_merged_text_may_have_all_probability_that_is_not_listed() -> None:
    three = answer("exhaustive", 3)
    record = answer_record(replace(three, merged=True, hypotheses=three.hypotheses[:2]))
    assert record["slack"] == pytest.approx(UNLISTED, abs=1e-4)


def test_a_little_may_be_left_where_floats_say_nothing() -> None:
    certain = replace(answer("optimal", 1), merged=True, hypotheses=(decoded("x", 0.0),))
    assert answer_record(certain)["slack"] > 0


def test_a_text_may_have_no_more_than_all_probability() -> None:
    improbable = replace(answer("none", 1), merged=True, hypotheses=(decoded("x", -50.0),))
    assert answer_record(improbable)["slack"] == 1.0


# --- scores under penalties ---


def scores_of(record: dict[str, Any]) -> list[float | None]:
    """Return the scores of a record's hypotheses."""
    return [hypothesis["score"] for hypothesis in record["hypotheses"]]


@pytest.fixture
def penalised() -> Answer:
    return penalised_answer()


def test_under_penalties_a_record_has_scores(penalised: Answer) -> None:
    assert scores_of(record_of(penalised)) == [-1.0, -2.0]


def test_without_penalties_a_record_has_no_scores(penalised: Answer) -> None:
    record = record_of(replace(penalised, penalties=Penalties()))
    assert ["score" in hypothesis for hypothesis in record["hypotheses"]] == [False, False]


def test_an_infinite_score_is_null(penalised: Answer) -> None:
    first, second = penalised.hypotheses
    worst = replace(second, hypothesis=replace(second.hypothesis, score=-math.inf))
    assert scores_of(record_of(replace(penalised, hypotheses=(first, worst)))) == [-1.0, None]
