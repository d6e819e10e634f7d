"""A Transformer's attention with alpha-entmax: weights, gradients, dropout."""

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.nn.multi_headed_attention import EntmaxMultiHeadedAttention
from onmt_entmax.opennmt import MultiHeadedAttention
from onmt_entmax.sparse import entmax

HEADS = 4


class Learned(NamedTuple):
    """Learned alphas."""

    parameters: list[float]
    """One for each head, or one for all heads; the sigmoid of each is alpha - 1."""


Alpha = float | Learned


def attention(
    alpha: Alpha, heads: int = HEADS, max_relative_positions: int = 0
) -> EntmaxMultiHeadedAttention:
    """Return attention of heads of size 2, in float64, that returns its weights."""
    torch.manual_seed(0)
    stock = MultiHeadedAttention(
        heads, 2 * heads, dropout=0.0, max_relative_positions=max_relative_positions
    )
    value = nn.Parameter(torch.tensor(alpha.parameters)) if isinstance(alpha, Learned) else alpha
    return EntmaxMultiHeadedAttention(stock, value, returns_weights=True).double()


def mask_of(lengths: list[int]) -> Tensor:
    """Return True at the padding of sentences, ``(sentences, 1, longest)``."""
    positions = torch.arange(max(lengths)).expand(len(lengths), 1, -1)
    return positions >= torch.tensor(lengths).view(-1, 1, 1)


def alphas_of(alpha: Alpha) -> list[float]:
    """Return the alpha of each of the four heads."""
    if isinstance(alpha, Learned):
        alphas = 1 + torch.tensor(alpha.parameters).double().sigmoid()
    else:
        alphas = torch.tensor(alpha).double()
    result: list[float] = alphas.expand(HEADS).tolist()
    return result


# --- values, by definition ---

LENGTHS = [6, 4]


class Attended(NamedTuple):
    """Attention from three queries to each of two sentences of different lengths."""

    module: EntmaxMultiHeadedAttention
    alphas: list[float]
    memory: Tensor
    """``(sentences, 6, 8)``."""
    queries: Tensor
    """``(sentences, 3, 8)``."""
    output: Tensor
    """``(sentences, 3, 8)``."""
    weights: Tensor
    """``(sentences, heads, 3, 6)``."""


@pytest.fixture(
    params=[
        pytest.param(1.0, id="softmax"),
        pytest.param(1.5, id="1.5"),
        pytest.param(2.0, id="sparsemax"),
        pytest.param(Learned([-2.0, 0.0, 1.0, 3.0]), id="an alpha learned for each head"),
        pytest.param(Learned([0.5]), id="an alpha learned for all heads"),
    ]
)
def attended(request: pytest.FixtureRequest) -> Attended:
    module = attention(request.param).eval()
    memory, queries = torch.randn(2, 6, 8).double(), 4 * torch.randn(2, 3, 8).double()
    output, weights = module(memory, memory, queries, mask=mask_of(LENGTHS), attn_type="context")
    return Attended(module, alphas_of(request.param), memory, queries, output, weights)


def weights_and_context(attended: Attended, row: int, head: int) -> tuple[Tensor, Tensor]:
    """Return the weights ``(3, length)`` and contexts ``(3, 2)`` of a head, by definition."""
    module, part = attended.module, slice(2 * head, 2 * head + 2)
    memory = attended.memory[row, : LENGTHS[row]]
    query = module.linear_query(attended.queries[row])[:, part]
    keys, values = module.linear_keys(memory)[:, part], module.linear_values(memory)[:, part]
    weights = entmax(query @ keys.t() / 2**0.5, attended.alphas[head])
    return weights, weights @ values


def test_weights_are_entmax_of_each_heads_scores(attended: Attended) -> None:
    for row, length in enumerate(LENGTHS):
        for head in range(HEADS):
            expected, _ = weights_and_context(attended, row, head)
            torch.testing.assert_close(attended.weights[row, head, :, :length], expected)


def test_weights_are_zero_where_masked(attended: Attended) -> None:
    for row, length in enumerate(LENGTHS):
        assert not attended.weights[row, :, :, length:].any()


def test_the_output_is_a_projection_of_all_contexts(attended: Attended) -> None:
    contexts = [
        torch.cat([weights_and_context(attended, row, head)[1] for head in range(HEADS)], 1)
        for row in range(len(LENGTHS))
    ]
    expected = attended.module.final_linear(torch.stack(contexts))
    torch.testing.assert_close(attended.output, expected)


def test_without_weights_the_output_is_the_same(attended: Attended) -> None:
    attended.module.returns_weights = False
    output, weights = attended.module(
        attended.memory,
        attended.memory,
        attended.queries,
        mask=mask_of(LENGTHS),
        attn_type="context",
    )
    torch.testing.assert_close(output, attended.output)
    assert weights.shape == (2, 1, 3, 0)


# --- relative positions ---


@pytest.mark.parametrize("training", [True, False], ids=["dropout", "evaluation"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relative_positions_are_those_of_opennmt(dtype: torch.dtype, training: bool) -> None:
    """The largest distance is 2, and some keys are farther, on both sides.

    Equal seeds give equal dropout.
    """
    stock = MultiHeadedAttention(2, 4, dropout=0.5, max_relative_positions=2)
    module = EntmaxMultiHeadedAttention(copy.deepcopy(stock), 1.0, returns_weights=False)
    states, mask = torch.randn(3, 9, 4, dtype=dtype), mask_of([9, 7, 5])
    outputs = []
    for attending in (stock, module):
        attending.to(dtype).train(training)
        torch.manual_seed(1)
        outputs.append(attending(states, states, states, mask=mask, attn_type="self")[0])
    torch.testing.assert_close(*outputs, rtol=0, atol=10 * torch.finfo(dtype).eps)


# --- parameters and gradients ---

of_all_alphas = pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(1.0, id="softmax"),
        pytest.param(1.5, id="1.5"),
        pytest.param(1.7, id="1.7"),
        pytest.param(Learned([-2.0, 3.0]), id="an alpha learned for each head"),
        pytest.param(Learned([0.5]), id="an alpha learned for all heads"),
    ],
)


@of_all_alphas
def test_learned_alphas_alone_are_parameters(alpha: Alpha) -> None:
    names = dict(attention(alpha, heads=2).named_parameters())
    assert ("a" in names) == isinstance(alpha, Learned)


@pytest.mark.parametrize(
    ("returns_weights", "training"),
    [
        pytest.param(True, False, id="with weights"),
        pytest.param(False, False, id="without weights"),
        pytest.param(False, True, id="in training"),
    ],
)
@pytest.mark.parametrize("attn_type", ["self", "context"])
@of_all_alphas
def test_gradients_equal_finite_differences(
    alpha: Alpha, attn_type: str, returns_weights: bool, training: bool
) -> None:
    """The gradients are with respect to queries, weights, and the parameters of learned alphas."""
    is_self = attn_type == "self"
    module = attention(alpha, heads=2, max_relative_positions=2 if is_self else 0)
    module.train(training)
    module.returns_weights = returns_weights
    queries, memory = torch.randn(2, 3, 4).double(), torch.randn(2, 4, 4).double()
    names = [name for name, _ in module.named_parameters()]

    def output(queries: Tensor, *parameters: Tensor) -> Tensor:
        """Return the outputs of two sentences, of which the second has padding."""
        keys, lengths = (queries, [3, 2]) if is_self else (memory, [4, 2])
        result, _ = torch.func.functional_call(
            module,
            dict(zip(names, parameters, strict=True)),
            (keys, keys, queries),
            {"mask": mask_of(lengths), "attn_type": attn_type},
        )
        return result

    inputs = [tensor.requires_grad_() for tensor in (queries, *module.parameters())]
    # The fast mode compares along one random direction, not along a hundred. It multiplies the
    # tolerances by the norms of directions, so they are smaller than the defaults here.
    assert torch.autograd.gradcheck(output, inputs, atol=1e-9, rtol=1e-6, fast_mode=True)


def test_learned_alphas_reach_softmax_and_sparsemax_with_finite_gradients() -> None:
    """The sigmoid of these parameters rounds to 0 or 1."""
    module = attention(Learned([-800.0, 800.0, -40.0, 40.0]))
    inputs = torch.randn(2, 5, 8).double()
    module(inputs, inputs, inputs, attn_type="self")[0].square().sum().backward()
    assert torch.as_tensor(module.alphas()).tolist() == [1, 2, 1, 2]
    assert all(p.grad.isfinite().all() for p in module.parameters())


# --- dropout ---


def difference_of_two_passes(module: EntmaxMultiHeadedAttention) -> Tensor:
    """Return by how much the outputs of two passes over the same random inputs differ."""
    inputs = torch.randn(2, 5, 8).double()
    first, second = (module(inputs, inputs, inputs, attn_type="self")[0] for _ in range(2))
    return first - second


@pytest.fixture
def with_dropout() -> EntmaxMultiHeadedAttention:
    module = attention(1.5)
    module.update_dropout(0.5)
    return module


def test_dropout_drops_weights_in_training(with_dropout: EntmaxMultiHeadedAttention) -> None:
    assert difference_of_two_passes(with_dropout.train()).abs().max() > 0.01


def test_dropout_drops_nothing_in_evaluation(with_dropout: EntmaxMultiHeadedAttention) -> None:
    assert not difference_of_two_passes(with_dropout.eval()).any()
