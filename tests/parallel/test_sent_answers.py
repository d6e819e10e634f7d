"""Messages between processes: answers, and texts of errors."""

import torch

from onmt_entmax.parallel.messages import packed, unpacked
from onmt_entmax.report.alignment import Alignment, Link
from onmt_entmax.report.answers import Decoded, Drawn
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import (
    Decision,
    Hypothesis,
    Penalties,
    Sample,
    SearchResult,
    Verification,
)
from tests.reports import certificate


def full_answer() -> Answer:
    """Return an answer with an instance of each class that an answer may hold."""
    best = Hypothesis(tokens=(5,), log_prob=-1.0, score=-1.0, attention=torch.ones(1, 2))
    alignment = Alignment(source=("a",), target=("b",), links=(Link(0, 0, 1.0),), dense=False)
    result = SearchResult(
        hypotheses=(best,),
        certificate=certificate(level="none", log_bound=-1.0, gap=0.0, proven=0, mass=0.5),
        finished=1,
        unfinished=None,
        rows=4,
        support=6,
    )
    return Answer(
        id=3,
        source="a",
        result=result,
        hypotheses=(Decoded("b", best, alignment),),
        attended=(2,),
        verification=Verification(agrees=None),
        merged=True,
        penalties=Penalties("avg"),
        mbr=Decision("exact_match", ("b",), expected=(0.4,), slack=0.1, level="found"),
        samples=(Drawn("b", Sample(tokens=(5,), log_prob=-1.0, complete=True)),),
    )


def test_a_received_answer_is_the_one_that_was_sent() -> None:
    received = unpacked(packed([full_answer()]))
    assert repr(received) == repr([full_answer()])  # `==` of tensors gives a tensor


def test_the_text_of_an_error_is_received() -> None:
    assert unpacked(packed("an error")) == "an error"
