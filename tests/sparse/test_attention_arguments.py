"""Arguments of attention: empty tensors, arguments that are refused, and names that they need."""

from typing import Any

import pytest
import torch

from onmt_entmax import entmax_attention, entmax_attention_weights
from tests.sparse.attention_inputs import random_tensors


@pytest.mark.parametrize(
    ("sentences", "queries", "keys"),
    [
        pytest.param(2, 3, 0, id="no keys"),
        pytest.param(2, 0, 0, id="neither queries nor keys"),
        pytest.param(0, 3, 0, id="no sentences"),
    ],
)
def test_attention_without_keys_is_zero(sentences: int, queries: int, keys: int) -> None:
    query, key = torch.randn(sentences, queries, 4), torch.randn(sentences, keys, 4)
    value = torch.randn(sentences, keys, 5)
    assert torch.equal(entmax_attention(query, key, value), torch.zeros(sentences, queries, 5))


# What replaces some of the arguments `random_tensors(3, 2)`, and the error.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "alpha below 1": ({"alpha": 0.9}, "alpha must be a number from 1"),
    "alphas below 1": ({"alpha": torch.tensor([1.5, 0.5])}, "every alpha must be a number"),
    "alphas that do not fit": ({"alpha": torch.ones(3)}, "does not fit the heads"),
    "both masks": ({"attn_mask": torch.ones(5, 7).bool(), "is_causal": True}, "not both"),
    "mask of integers": ({"attn_mask": torch.ones(5, 7).long()}, "boolean or floating point"),
    "mask that does not fit": ({"attn_mask": torch.ones(5, 6)}, "does not broadcast"),
    "dropout above 1": ({"dropout_p": 1.5}, "dropout_p must be from 0 to 1"),
    "keys of another size": ({"key": torch.ones(3, 2, 7, 5)}, "of size 4, key of size 5"),
    "fewer values than keys": ({"value": torch.ones(3, 2, 6, 3)}, "key has length 7, value 6"),
    "values of other heads": (
        {"value": torch.ones(3, 5, 7, 3)},
        "leading dimensions do not broadcast",
    ),
    "more heads of keys than of queries": (
        {"key": torch.ones(3, 4, 7, 4), "enable_gqa": True},
        "a divisor of the 2 heads",
    ),
    "fewer heads of keys than of values": (
        {"key": torch.ones(3, 1, 7, 4), "enable_gqa": True},
        "key has 1, value 2",
    ),
    "groups without heads": (
        {"query": torch.ones(5, 4), "enable_gqa": True},
        "needs tensors with heads",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=list(BAD))
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    query, key, value = random_tensors(3, 2)
    with pytest.raises(ValueError, match=message):
        entmax_attention(**{"query": query, "key": key, "value": value, **arguments})


MASK = torch.ones(5, 7, dtype=torch.bool)
# The fourth parameter is the mask for PyTorch, and some may write alpha there.
by_position = pytest.mark.parametrize(
    "positional", [[MASK], [1.5], [1.5, MASK]], ids=["mask", "alpha", "alpha and mask"]
)


@by_position
def test_parameters_after_value_are_given_by_name(positional: list[Any]) -> None:
    query, key, value = random_tensors(3, 2)
    with pytest.raises(TypeError, match=r"write entmax_attention\(query, key, value, alpha="):
        entmax_attention(query, key, value, *positional)


@by_position
def test_parameters_of_weights_after_key_are_given_by_name(positional: list[Any]) -> None:
    query, key, _ = random_tensors(3, 2)
    with pytest.raises(TypeError, match=r"write entmax_attention_weights\(query, key, alpha="):
        entmax_attention_weights(query, key, *positional)
