"""Messages between processes: answers, and texts of errors."""

from typing import Any, get_args, get_type_hints

import torch

from onmt_entmax.parallel.messages import _PARTS, packed, unpacked
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


def classes_in(kind: Any) -> set[type]:
    """Return the classes of the package that values of a type may hold, at any depth."""
    classes: set[type] = set()
    waiting = [kind]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)  # such as those of `tuple[Decoded, ...]`
        is_of_the_package = isinstance(kind, type) and kind.__module__.startswith("onmt_entmax")
        if is_of_the_package and kind not in classes:
            classes.add(kind)
            waiting += get_type_hints(kind).values()
    return classes


def test_messages_may_have_every_class_that_an_answer_may_hold() -> None:
    """A receiver refuses all other classes."""
    assert classes_in(Answer) == set(_PARTS)


def test_the_text_of_an_error_is_received() -> None:
    assert unpacked(packed("an error")) == "an error"
