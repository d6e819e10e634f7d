"""Counts of the records of a report by what their certificates prove."""

from dataclasses import fields

import pytest

from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.counts import CertificateCounts
from onmt_entmax.report.summary import Summary
from tests.report.answers import answer


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param(answer("exhaustive", 1), id="one possible"),
        pytest.param(answer("exhaustive", 2), id="several possible"),
        pytest.param(answer("exhaustive", 0), id="none possible"),
        pytest.param(answer("exhaustive", 1, excluded=0.3), id="others excluded"),
        pytest.param(answer("optimal", 1), id="optimal"),
        pytest.param(answer("none", 0, unfinished="x"), id="cut"),
        pytest.param(Answer(0, " "), id="blank line"),
    ],
)
def test_a_record_counts_as_its_answer_does(sentence: Answer) -> None:
    of_answer, of_record = Summary(), CertificateCounts()
    of_answer.add(sentence)
    of_record.add_record(answer_record(sentence))
    assert of_record != CertificateCounts()
    for counted in fields(CertificateCounts):
        assert getattr(of_record, counted.name) == getattr(of_answer, counted.name), counted.name


def test_unseen_tokens_of_a_record_are_of_the_language_of_its_source() -> None:
    record = answer_record(answer("exhaustive", 1))
    counts = CertificateCounts()
    counts.add_record(record | {"source": "lang=german a b b", "unseen": {"b": 2}})
    assert counts.source.unseen == {("lang=german", "b"): 2}
