"""`Translator` under lexical constraints and regular expressions.

All outputs of the model can be enumerated. Those that must be found under a constraint are those
of them that satisfy it.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pytest

from onmt_entmax import SearchTask, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import LineConstraints, SearchConfig
from tests.reversing_model import (
    load_without_warning,
    with_smaller_scores,
    writing_right_to_left,
)

# Of the model that reverses its source: the best output for `a b c` is `c b a`.
SOURCES = ["a b c", "f e d", "b b a"]


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    """The model with smaller scores: 12, 44 and 1,181 outputs of the sources are possible."""
    return with_smaller_scores(load_without_warning())


def enumerator(model: LoadedModel, **changes: object) -> Translator:
    """Return a translator that finds every possible output; `n_best` 0 sets no limit."""
    return Translator([model], SearchTask(SearchConfig(n_best=0), method="enumerate", **changes))


def probabilities_of(answer: Answer) -> dict[str, float]:
    """Return the outputs of a line with their probabilities."""
    return {output.text: output.hypothesis.prob for output in answer.hypotheses}


@pytest.fixture(scope="module")
def all_outputs(model: LoadedModel) -> list[dict[str, float]]:
    """The outputs of each source without a constraint, with their probabilities."""
    answers = list(enumerator(model).answers(SOURCES))
    assert all(answer.result.certificate.level == "exhaustive" for answer in answers)
    return [probabilities_of(answer) for answer in answers]


# --- lines with constraints ------------------------------------------------------------------

# Constraints, and whether an output, a list of tokens, satisfies them.
CONSTRAINTS: dict[str, tuple[LineConstraints, Callable[[list[str]], bool]]] = {
    "a phrase": (
        LineConstraints(required=(("c b",),)),
        lambda output: ("c", "b") in pairwise(output),
    ),
    "one of two": (
        LineConstraints(required=(("d", "c"),)),
        lambda output: "d" in output or "c" in output,
    ),
    "without a token": (LineConstraints(avoid=("b",)), lambda output: "b" not in output),
    "two groups, without a token": (
        LineConstraints(required=(("a",), ("b", "e")), avoid=("c",)),
        lambda output: "a" in output and ("b" in output or "e" in output) and "c" not in output,
    ),
    "an expression": (
        LineConstraints(regex=". . [a d]"),
        lambda output: len(output) == 3 and output[2] in ("a", "d"),
    ),
    "a token and an expression": (
        LineConstraints(required=(("a",),), regex=".* b .*"),
        lambda output: "a" in output and "b" in output,
    ),
}


class Constrained(NamedTuple):
    """An answer under a constraint, and the outputs that satisfy it with their probabilities."""

    answer: Answer
    expected: dict[str, float]


@pytest.fixture(scope="module", params=CONSTRAINTS)
def constrained(
    request: pytest.FixtureRequest, model: LoadedModel, all_outputs: list[dict[str, float]]
) -> list[Constrained]:
    """Answers of the first and the last source; the source between them has no constraint."""
    constraint, is_satisfied = CONSTRAINTS[request.param]
    constraints = [constraint, LineConstraints(), constraint]
    answers = enumerator(model).answers(SOURCES, constraints=constraints)
    satisfying = [
        {text: prob for text, prob in outputs.items() if is_satisfied(text.split())}
        for outputs in all_outputs
    ]
    first, _, last = map(Constrained, answers, satisfying)
    assert 0 < len(first.expected) < len(all_outputs[0])
    assert 0 < len(last.expected) < len(all_outputs[2])
    return [first, last]


def test_every_output_that_satisfies_a_constraint_is_found_with_its_probability(
    constrained: list[Constrained],
) -> None:
    for answer, expected in constrained:
        assert probabilities_of(answer) == pytest.approx(expected)


def test_the_certificate_has_the_probability_of_satisfying_a_constraint(
    constrained: list[Constrained],
) -> None:
    for answer, expected in constrained:
        least, most = answer.result.certificate.satisfied
        assert least == most == pytest.approx(sum(expected.values()), abs=1e-6)


def test_the_record_has_the_probability_of_satisfying_a_constraint(
    constrained: list[Constrained],
) -> None:
    for answer, _ in constrained:
        assert answer_record(answer)["satisfied"] == [*answer.result.certificate.satisfied]


@pytest.fixture(scope="module")
def unconstrained(model: LoadedModel) -> Answer:
    """The answer of a line without a constraint, between lines with one."""
    constraint = LineConstraints(avoid=("b",))
    constraints = [constraint, LineConstraints(), constraint]
    _, answer, _ = enumerator(model).answers(SOURCES, constraints=constraints)
    return answer


def test_a_line_without_a_constraint_has_all_outputs(
    unconstrained: Answer, all_outputs: list[dict[str, float]]
) -> None:
    assert probabilities_of(unconstrained) == pytest.approx(all_outputs[1])


def test_a_line_without_a_constraint_has_no_probability_of_satisfying(
    unconstrained: Answer,
) -> None:
    assert unconstrained.result.certificate.satisfied is None


# --- an expression for all lines -------------------------------------------------------------


@pytest.fixture(scope="module")
def without_e(model: LoadedModel) -> list[Answer]:
    """Answers under an expression without e; the constraint of the second requires an e."""
    constraints = [LineConstraints(), LineConstraints(required=(("e",),)), LineConstraints()]
    return list(enumerator(model, regex="[^e]*").answers(SOURCES, constraints=constraints))


@pytest.mark.parametrize("line", [0, 2])
def test_an_expression_of_the_task_is_for_all_lines(without_e: list[Answer], line: int) -> None:
    texts = [output.text for output in without_e[line].hypotheses]
    assert texts
    assert not any("e" in text for text in texts)


def test_an_expression_of_the_task_joins_those_of_lines(without_e: list[Answer]) -> None:
    """A contradiction is proven to have no output."""
    contradiction = without_e[1]
    assert not contradiction.hypotheses
    assert contradiction.result.certificate.level == "exhaustive"
    assert contradiction.result.certificate.satisfied == (0.0, 0.0)


# --- a model that writes from right to left --------------------------------------------------


@pytest.fixture(scope="module")
def backwards() -> Translator:
    """The model as one that writes its output from the end: its only one for `a b c` is `a b c`."""
    return Translator([writing_right_to_left(load_without_warning())], SearchTask())


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param(LineConstraints(), id="none"),
        pytest.param(LineConstraints(required=(("a b",),)), id="a phrase"),
        pytest.param(LineConstraints(regex="a .*"), id="an expression"),
    ],
)
def test_a_right_to_left_model_reads_constraints_from_left_to_right(
    backwards: Translator, constraint: LineConstraints
) -> None:
    (answer,) = backwards.answers(["a b c"], constraints=[constraint])
    assert answer.hypotheses[0].text == "a b c"


def test_an_expression_is_not_that_of_the_reversed_output(backwards: Translator) -> None:
    (answer,) = backwards.answers(["a b c"], constraints=[LineConstraints(regex="c .*")])
    assert not answer.hypotheses
    assert answer.result.certificate.satisfied == (0.0, 0.0)
