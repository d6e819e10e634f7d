"""Records and summary of a report."""

import io
import json
import math
from dataclasses import replace

import pytest

from onmt_entmax.report.answers import Answer, Decoded
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter
from onmt_entmax.search import (
    Certificate,
    Hypothesis,
    Penalties,
    SearchResult,
)


def answer(level: str, finished: int, unfinished: bool = False, excluded: float = 0.0) -> Answer:
    found = tuple(Hypothesis((5 + i,), -1.0 - i, -1.0 - i) for i in range(finished))
    most = math.log(excluded) if excluded else -math.inf
    certificate = Certificate(
        level, -2.0, 1.0, int(level != "none"), 0.5, 1, int(unfinished), excluded, most, False
    )
    prefix = Hypothesis((5,), -1.0, -1.0) if unfinished else None
    result = SearchResult(found, certificate, finished, prefix, rows=4, support=6)
    texts = tuple(Decoded("x", hypothesis) for hypothesis in found)
    return Answer(0, "a", result, texts, unfinished="x" if unfinished else None)


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        (answer("exhaustive", 1), "single_hypothesis_percent"),
        (answer("exhaustive", 2), "several_hypotheses_percent"),
        (answer("exhaustive", 0), "impossible"),
        (answer("none", 0, unfinished=True), "unfinished"),
        (answer("none", 0), "unfinished"),
        (answer("exhaustive", 1, excluded=0.3), None),
        (answer("optimal", 1), None),
    ],
)
def test_a_sentence_counts_once(given: Answer, counted: str | None) -> None:
    summary = Summary()
    summary.add(given)
    kinds = [
        "single_hypothesis_percent",
        "several_hypotheses_percent",
        "impossible",
        "unfinished",
    ]
    rates = summary.as_dict()
    assert [name for name in kinds if rates[name]] == ([counted] if counted else [])


@pytest.mark.parametrize(("least", "abstains"), [(0.0, False), (0.5, False), (0.51, True)])
def test_an_output_of_less_probability_is_left_out(least: float, abstains: bool) -> None:
    """Two hypotheses are one text, of probability 0.503; a blank line is no abstention."""
    output, report, aligned = io.StringIO(), io.StringIO(), io.StringIO()
    writer = AnswerWriter(output, report, 2, aligned, least)
    for each in (answer("exhaustive", 2), Answer(1, " "), answer("none", 0, unfinished=True)):
        writer.write(each)
    kept = ["", ""] if abstains else ["x", "x"]
    cut = ["", ""] if least else ["x", ""]
    assert output.getvalue().split("\n") == [*kept, "", "", *cut, ""]
    assert aligned.getvalue() == "\n" * 6
    records = [json.loads(line) for line in report.getvalue().splitlines()]
    assert [each.get("abstained", False) for each in records] == [abstains, False, least > 0]
    assert [len(each["hypotheses"]) for each in records] == [2, 0, 0]
    assert records[2]["unfinished"] == "x"
    summary = writer.summary
    assert (summary.as_dict()["abstained"], summary.blank) == (abstains + (least > 0), 1)
    assert (f"{abstains + 1} abstained" in summary.text()) == (least > 0)


def test_an_output_is_one_line_whatever_it_holds() -> None:
    """Tokens have no line ends, but a transform may make one when it is undone."""
    given = answer("exhaustive", 2)
    texts = ["a\nb\r\nc\r", "d\u2028e"]
    made = (replace(one, text=text) for one, text in zip(given.hypotheses, texts, strict=True))
    given = replace(given, hypotheses=tuple(made))
    output, report = io.StringIO(newline=""), io.StringIO()
    AnswerWriter(output, report, n_best=3).write(given)
    assert output.getvalue() == "a b  c \nd\u2028e\n\n"
    assert [h["text"] for h in json.loads(report.getvalue())["hypotheses"]] == texts


def test_how_much_more_a_text_may_have() -> None:
    """The hypotheses have e^-1 and e^-2; other token sequences may become the same texts."""
    for given in (answer("exhaustive", 2), answer("optimal", 2)):
        assert "slack" not in given.record()
    assert "slack" not in replace(answer("exhaustive", 2), merged=True).record()
    left = pytest.approx(1 - math.exp(-1) - math.exp(-2), abs=1e-4)
    assert replace(answer("optimal", 2), merged=True).record()["slack"] == left
    cut = answer("exhaustive", 3)
    cut = replace(cut, merged=True, hypotheses=cut.hypotheses[:2])
    assert cut.record()["slack"] == left
    # Where floats say that nothing is left, a little may be.
    certain = (Decoded("x", Hypothesis((5,), 0.0, 0.0)),)
    assert replace(answer("optimal", 1), merged=True, hypotheses=certain).record()["slack"] > 0


def test_scores_are_in_a_record_where_penalties_rank_be_they_none_or_infinite() -> None:
    given = replace(answer("optimal", 2), penalties=Penalties("avg"))
    assert [h["score"] for h in given.record()["hypotheses"]] == [-1.0, -2.0]
    assert "score" not in replace(given, penalties=Penalties()).record()["hypotheses"][0]
    worst = replace(given.hypotheses[1].hypothesis, score=-math.inf)
    infinite = replace(given, hypotheses=(given.hypotheses[0], Decoded("y", worst)))
    output, report = io.StringIO(), io.StringIO()
    AnswerWriter(output, report, 1).write(infinite)
    (record,) = [json.loads(line, parse_constant=pytest.fail) for line in [report.getvalue()]]
    assert [h["score"] for h in record["hypotheses"]] == [-1.0, None]
    summary = Summary()
    summary.add(given)
    assert "highest scored output proven (or the above)" in summary.text()
