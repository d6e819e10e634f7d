"""Output lines, records and summary of a report."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Decoded
from onmt_entmax.report.output_lines import output_scores
from onmt_entmax.report.writers import Answer, AnswerWriter, Summary
from onmt_entmax.search import Hypothesis, Penalties, SearchResult
from tests.reports import certificate


def decoded(text: str, log_prob: float) -> Decoded:
    return Decoded(text, Hypothesis((5,), log_prob, log_prob))


def answer(
    level: str, hypothesis_count: int = 0, unfinished: str | None = None, excluded: float = 0.0
) -> Answer:
    """Return an answer with so many hypotheses of one text, of log-probabilities -1, -2, ...

    Args:
        level: of the certificate.
        hypothesis_count: number of finished hypotheses, all listed.
        unfinished: text of a hypothesis that the length limit cut.
        excluded: probability of what constraints exclude.
    """
    proof = certificate(
        level=level,
        log_bound=-2.0,
        gap=1.0,
        proven=0 if level == "none" else 1,
        mass=0.5,
        dropped=1,
        truncated=0 if unfinished is None else 1,
        excluded=excluded,
        log_excluded_bound=math.log(excluded) if excluded else -math.inf,
        strict=False,
    )
    hypotheses = tuple(decoded("x", -float(rank)) for rank in range(1, hypothesis_count + 1))
    result = SearchResult(
        tuple(each.hypothesis for each in hypotheses),
        proof,
        hypothesis_count,
        None if unfinished is None else Hypothesis((5,), -1.0, -1.0),
        rows=4,
        support=6,
    )
    return Answer(0, "a", result, hypotheses, unfinished=unfinished)


def record_of(answer: Answer) -> dict[str, Any]:
    """Return the record as the report has it: JSON without infinity and NaN."""
    report = io.StringIO()
    AnswerWriter(io.StringIO(), report, 1).write(answer)
    record: dict[str, Any] = json.loads(report.getvalue(), parse_constant=pytest.fail)
    return record


# --- counts of the summary ---

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


# --- abstentions ---


class Written(NamedTuple):
    """What a writer wrote."""

    lines: list[str]
    records: list[dict[str, Any]]
    alignment: str
    summary: Summary


def written(least_probability: float) -> Written:
    """Write a text of probability e^-1 + e^-2 = 0.503, a blank line, and an unfinished sentence."""
    output, report, alignment = io.StringIO(), io.StringIO(), io.StringIO()
    writer = AnswerWriter(output, report, 2, alignment, least_probability)
    for sentence in (answer("exhaustive", 2), Answer(1, " "), answer("none", unfinished="x")):
        writer.write(sentence)
    records = [json.loads(line) for line in report.getvalue().splitlines()]
    return Written(output.getvalue().splitlines(), records, alignment.getvalue(), writer.summary)


@pytest.mark.parametrize(
    ("least_probability", "lines"),
    [
        (0.0, ["x", "x", "", "", "x", ""]),
        (0.5, ["x", "x", "", "", "", ""]),
        (0.51, ["", "", "", "", "", ""]),
    ],
)
def test_an_output_of_less_probability_is_left_out(
    least_probability: float, lines: list[str]
) -> None:
    """Two hypotheses are one text, whose probability is their sum."""
    assert written(least_probability).lines == lines


@pytest.mark.parametrize(
    ("least_probability", "abstained"),
    [(0.0, [False, False, False]), (0.5, [False, False, True]), (0.51, [True, False, True])],
)
def test_a_record_says_that_it_abstains(least_probability: float, abstained: list[bool]) -> None:
    """A blank line is no abstention."""
    records = written(least_probability).records
    assert [record.get("abstained", False) for record in records] == abstained


@pytest.mark.parametrize("least_probability", [0.0, 0.5, 0.51])
def test_a_record_keeps_its_hypotheses(least_probability: float) -> None:
    records = written(least_probability).records
    assert [len(record["hypotheses"]) for record in records] == [2, 0, 0]
    assert records[2]["unfinished"] == "x"


@pytest.mark.parametrize(("least_probability", "abstained"), [(0.0, 0), (0.5, 1), (0.51, 2)])
def test_the_summary_counts_abstentions(least_probability: float, abstained: int) -> None:
    summary = written(least_probability).summary
    assert summary.as_dict()["abstained"] == abstained
    assert summary.blank == 1


def test_the_summary_names_abstentions() -> None:
    assert "abstained" not in written(0.0).summary.text()
    assert "1 abstained" in written(0.5).summary.text()
    assert "2 abstained" in written(0.51).summary.text()


def test_an_alignment_file_has_a_line_for_each_output_without_attention_too() -> None:
    assert written(0.0).alignment == "\n" * 6


def test_a_blank_line_has_the_keys_of_a_searched_one() -> None:
    searched, blank = record_of(answer("exhaustive", 2)), record_of(Answer(1, " "))
    assert blank.keys() == searched.keys() - {"source_tokens"}


def test_a_text_that_is_not_finished_has_no_score() -> None:
    assert output_scores(answer("none", unfinished="x"), 2) == [None, None]


# --- texts ---

TEXTS = ["a\nb\r\nc\r", "d\u2028e"]


@pytest.fixture
def with_line_ends() -> Answer:
    """An answer whose texts have line ends, as a transform may make when it is undone."""
    hypotheses = tuple(
        decoded(text, log_prob) for text, log_prob in zip(TEXTS, (-1.0, -2.0), strict=True)
    )
    return replace(answer("exhaustive", 2), hypotheses=hypotheses)


def test_an_output_is_one_line_whatever_it_holds(with_line_ends: Answer) -> None:
    output = io.StringIO(newline="")
    AnswerWriter(output, io.StringIO(), n_best=3).write(with_line_ends)
    assert output.getvalue() == "a b  c \nd\u2028e\n\n"


def test_a_record_has_the_texts_as_they_are(with_line_ends: Answer) -> None:
    hypotheses = record_of(with_line_ends)["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == TEXTS


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


# --- scores under penalties ---


def scores_of(record: dict[str, Any]) -> Sequence[float | None]:
    return [hypothesis["score"] for hypothesis in record["hypotheses"]]


@pytest.fixture
def penalised() -> Answer:
    """An answer under a length penalty."""
    return replace(answer("optimal", 2), penalties=Penalties("avg"))


def test_under_penalties_a_record_has_scores(penalised: Answer) -> None:
    assert scores_of(record_of(penalised)) == [-1.0, -2.0]


def test_without_penalties_a_record_has_no_scores(penalised: Answer) -> None:
    record = record_of(replace(penalised, penalties=Penalties()))
    assert all("score" not in hypothesis for hypothesis in record["hypotheses"])


def test_an_infinite_score_is_null(penalised: Answer) -> None:
    first, second = penalised.hypotheses
    worst = replace(second, hypothesis=replace(second.hypothesis, score=-math.inf))
    assert scores_of(record_of(replace(penalised, hypotheses=(first, worst)))) == [-1.0, None]


def test_the_summary_speaks_of_scores_under_penalties(penalised: Answer) -> None:
    summary = Summary()
    summary.add(penalised)
    assert "highest scored output proven (or the above)" in summary.text()
