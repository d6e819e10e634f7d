"""Weights of the attention over the words of a premise, `tools.papers.nli_model`."""

import pytest
import torch
from torch import Tensor

from tests.oracles import entmax_oracle
from tools.papers.nli_model import PremiseAttention
from tools.papers.nli_settings import alpha_of

# Mappings from scores to weights, as settings name them; 1.5 is 1.5-entmax.
KINDS: list[float | str] = ["logistic", "softmax", 1.5, "sparsemax"]
SIZE = 4  # of states and queries
LENGTHS = torch.tensor([5, 1, 3])  # words of three premises, which are padded to the longest


def scores_by_formula(attention: PremiseAttention, states: Tensor, query: Tensor) -> Tensor:
    """Return the scores `(positions,)` of one premise, position by position.

    That of a state h with the query q is w . tanh(W h + U q + b).

    Args:
        attention: has W as `premise`, U and b as `hypothesis`, w as `score`.
        states: `(positions, SIZE)`.
        query: `(SIZE,)`.
    """
    scores = []
    for state in states:
        hidden = attention.premise.weight @ state
        hidden = hidden + attention.hypothesis.weight @ query
        hidden = hidden + attention.hypothesis.bias
        scores.append((attention.score.weight[0] @ hidden.tanh()).item())
    return torch.tensor(scores).double()


def weights_by_definition(kind: float | str, scores: Tensor) -> Tensor:
    """Return the weights `(positions,)` of the scores of one premise."""
    if kind == "logistic":
        return 1 / (1 + torch.exp(-scores))
    return entmax_oracle(scores, alpha_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = PremiseAttention(SIZE, kind).double()
    states = 3 * torch.randn(3, 5, SIZE).double()  # (sentences, positions, SIZE)
    query = torch.randn(3, SIZE).double()
    weights = attention(states, query, LENGTHS)
    for sentence, length in enumerate(LENGTHS.tolist()):
        scores = scores_by_formula(attention, states[sentence, :length], query[sentence])
        expected = weights_by_definition(kind, scores)
        # Scores by formula pass through float32.
        torch.testing.assert_close(weights[sentence, :length], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_weight(kind: float | str) -> None:
    attention = PremiseAttention(SIZE, kind)
    weights = attention(torch.randn(3, 5, SIZE), torch.randn(3, SIZE), LENGTHS)
    is_padding = torch.arange(5) >= LENGTHS[:, None]
    assert not weights[is_padding].any()
