"""Searches of models made by hand, with all that their results must say."""

import math
from typing import Any

import pytest

from onmt_entmax.search import (
    Automaton,
    Request,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
)
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.automata import compiled
from tests.search.beam_cases import BEAM
from tests.search.cases import TOKENS, VOCABULARY_SIZE, Case, Expected, Model
from tests.search.constraint_cases import EXCLUDING, SATISFYING
from tests.search.exact_cases import EXACT
from tests.search.penalty_cases import PENALISED
from tests.search.stop_cases import STOP
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed

BEAM_SEARCHES = BEAM | STOP | PENALISED | EXCLUDING | SATISFYING
A, B = 2, 3  # the tokens of the documentation's example


def automaton_of(case: Case) -> Automaton | None:
    """Return what outputs of a case must satisfy."""
    if case.regex is None:
        return None
    return compiled(parse_expression(case.regex), TOKENS, EOS)


def parts_of(result: SearchResult) -> dict[str, Any]:
    """Return all parts of a result, by the names of `Expected`."""
    certificate, hypotheses = result.certificate, result.hypotheses
    return {
        "tokens": [hypothesis.tokens for hypothesis in hypotheses],
        "score": hypotheses[0].score if hypotheses else None,
        "finished": result.finished,
        "only": result.only,
        "unfinished": result.unfinished.tokens if result.unfinished else None,
        "rows": result.rows,
        "support": result.support,
        "level": certificate.level,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "proven": certificate.proven,
        "mass": certificate.mass,
        "dropped": certificate.dropped,
        "truncated": certificate.truncated,
        "excluded": certificate.excluded,
        "excluded_bound": math.exp(certificate.log_excluded_bound),
        "strict": certificate.strict,
        "satisfied": certificate.satisfied,
    }


def check_parts(result: SearchResult, expected: Expected) -> None:
    """Compare the expected parts of a result, one at least: numbers nearly, all else exactly."""
    assert expected
    parts = parts_of(result)
    for name, value in expected.items():
        exact = name in ("tokens", "unfinished", "level")
        assert parts[name] == (value if exact else pytest.approx(value)), name


@pytest.mark.parametrize("case", BEAM_SEARCHES.values(), ids=list(BEAM_SEARCHES))
def test_a_beam_search_has_the_result_of_its_case(case: Case) -> None:
    stepper = TableStepper(VOCABULARY_SIZE, attention=True)
    (result,) = beam_search(
        stepper, [Fixed(case.model)], case.config, automata=[automaton_of(case)]
    )
    check_parts(result, case.expected)
    assert result.rows == stepper.rows  # a row is a prefix whose next tokens the model computed


@pytest.mark.parametrize("case", EXACT.values(), ids=list(EXACT))
def test_an_exact_search_has_the_result_of_its_case(case: Case) -> None:
    stepper = TableStepper(VOCABULARY_SIZE)
    result = exact_search(
        stepper,
        Request([Fixed(case.model)], automata=[automaton_of(case)]),
        case.config,
        case.budget,
        case.mass,
    )
    check_parts(result, case.expected)
    assert result.rows == stepper.rows  # a row is a prefix whose next tokens the model computed


def test_forced_prefixes_of_some_sentences_do_not_touch_the_others() -> None:
    models = [Fixed({(): {2: 0.6, EOS: 0.4}, (2,): {EOS: 1.0}})] * 3
    config = SearchConfig(n_best=0, max_length=2)
    impossible, possible, free = beam_search(
        TableStepper(VOCABULARY_SIZE), models, config, [(2, 3), (2,), ()]
    )
    check_parts(
        impossible,
        {
            "tokens": [],
            "unfinished": None,
            "level": "exhaustive",
            "excluded": 1,
            "truncated": 0,
            "gap": math.inf,
        },
    )
    check_parts(possible, {"tokens": [(2,)], "excluded": 0.4})
    check_parts(free, {"tokens": [(2,), ()], "excluded": 0})


@pytest.mark.parametrize(
    ("beam_size", "end", "level", "outputs", "bound"),
    [
        pytest.param(1, 0.7, "optimal", [((A,), 0.42)], 0.4, id="a beam of one proves the best"),
        pytest.param(1, 0.6, "none", [((A,), 0.36)], 0.4, id="a beam of one proves nothing"),
        pytest.param(
            2,
            0.7,
            "exhaustive",
            [((A,), 0.42), ((B,), 0.4), ((A, B), 0.18)],
            0.0,
            id="a beam of two finds all",
        ),
    ],
)
def test_the_example_of_the_documentation_has_its_certificates(
    beam_size: int,
    end: float,
    level: str,
    outputs: list[tuple[tuple[int, ...], float]],
    bound: float,
) -> None:
    """docs/certificates.md computes these numbers by hand."""
    model: Model = {(): {A: 0.6, B: 0.4}, (A,): {EOS: end, B: 1 - end}}
    config = SearchConfig(beam_size=beam_size, n_best=len(outputs))
    (result,) = beam_search(TableStepper(VOCABULARY_SIZE), [Fixed(model)], config)
    assert result.certificate.level == level
    assert result.certificate.bound == pytest.approx(bound)
    assert [(h.tokens, pytest.approx(h.prob)) for h in result.hypotheses] == outputs
