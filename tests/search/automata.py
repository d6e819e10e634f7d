"""Automata of expressions that name tokens by their ids."""

from collections.abc import Sequence

import numpy as np

from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import Expression
from tests.search.enumeration import Tokens


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
