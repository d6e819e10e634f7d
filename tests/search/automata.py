"""Automata of expressions that name tokens by their ids, and what a search says of them."""

import math
from collections.abc import Sequence

import numpy as np

from onmt_entmax.search import SearchResult
from onmt_entmax.search.automaton import VIOLATED, Automaton
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import Expression
from tests.search.enumeration import EnumeratedSupport, Tokens
from tests.search.expressions import Matcher


def compiled(expression: Expression, tokens: Sequence[int], eos: int) -> Automaton:
    """Return the automaton of an expression that names tokens by their ids."""
    ids = {str(token): token for token in tokens}
    return compile_expression(expression, ids.get, eos)


def after(automaton: Automaton, prefix: Tokens) -> int:
    """Return the state after a prefix."""
    state = np.array([automaton.start])
    for token in prefix:
        state = automaton.step(state, np.array([token]))
    return int(state[0])


def satisfying(
    support: EnumeratedSupport, automaton: Automaton, matches: Matcher
) -> EnumeratedSupport:
    """Return the part of the support that satisfies an expression, or may once it is complete."""
    return EnumeratedSupport(
        sequences={
            tokens: log_prob for tokens, log_prob in support.sequences.items() if matches(tokens)
        },
        prefixes={
            tokens: log_prob
            for tokens, log_prob in support.prefixes.items()
            if after(automaton, tokens) != VIOLATED
        },
        excluded={(): 0.0},  # no limit here: `most_excluded` says what a search must not miss
    )


def check_probability(
    result: SearchResult, support: EnumeratedSupport, matches: Matcher, tolerance: float
) -> None:
    """Check the probability that the model's output satisfies an expression.

    Args:
        result: of the search.
        support: of the model, whether it satisfies the expression or not.
        matches: what does.
        tolerance: of sums of probabilities.
    """
    satisfied = result.certificate.satisfied
    assert satisfied is not None
    least, most = satisfied
    assert 0 <= least <= most <= 1
    matching = sum(math.exp(p) for tokens, p in support.sequences.items() if matches(tokens))
    others = sum(math.exp(p) for tokens, p in support.sequences.items() if not matches(tokens))
    assert matching <= most + tolerance
    assert least <= 1 - others + tolerance
    if result.certificate.level == "exhaustive" and not support.excluded:
        assert least == most
    if not support.prefixes and not support.excluded:  # every output is enumerated
        assert least <= matching + tolerance
