"""A Transformer's attention with alpha-entmax: weights, gradients, learned alphas."""

import copy
import dataclasses
import itertools
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.nn.transformer import (
    KINDS,
    EntmaxMultiHeadedAttention,
    attentions,
    learned_alphas,
)
from onmt_entmax.opennmt import MultiHeadedAttention
from onmt_entmax.sparse import entmax
from tests.models import LEARNED, TRANSFORMER, VOCABULARIES

PAD = VOCABULARIES.target.pad
HEADS = 4


def attention(
    alpha: float | list[float], relative: int = 0, heads: int = HEADS
) -> EntmaxMultiHeadedAttention:
    """Return attention of heads of size 2, in float64, that returns its weights.

    Args:
        alpha: a number, or the parameters of learned ones.
        relative: the largest relative position; 0 for none.
        heads: their number.
    """
    torch.manual_seed(0)
    stock = MultiHeadedAttention(heads, 2 * heads, dropout=0.0, max_relative_positions=relative)
    given = nn.Parameter(torch.tensor(alpha)) if isinstance(alpha, list) else alpha
    return EntmaxMultiHeadedAttention(stock, given, returns_weights=True).double()


def mask_of(lengths: list[int]) -> Tensor:
    """Return True at the padding of sentences, ``(sentences, 1, longest)``."""
    positions = torch.arange(max(lengths)).expand(len(lengths), 1, -1)
    return positions >= torch.tensor(lengths).view(-1, 1, 1)


def alphas_of(alpha: float | list[float]) -> list[float]:
    """Return the alpha of each head; in a list are parameters of learned ones."""
    alphas = torch.tensor(alpha)
    if isinstance(alpha, list):
        alphas = 1 + alphas.sigmoid()
    result: list[float] = alphas.double().expand(HEADS).tolist()
    return result


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


@pytest.fixture(params=[1.0, 1.5, 2.0, [-2.0, 0.0, 1.0, 3.0], [0.5]], ids=str)
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


@pytest.mark.parametrize("training", [True, False], ids=["dropout", "evaluation"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_relative_positions_are_those_of_opennmt(dtype: torch.dtype, training: bool) -> None:
    """Some keys are farther than the largest distance, on both sides."""
    stock = MultiHeadedAttention(2, 4, dropout=0.5, max_relative_positions=2)
    module = EntmaxMultiHeadedAttention(copy.deepcopy(stock), 1.0, returns_weights=False)
    states, mask = torch.randn(3, 9, 4, dtype=dtype), mask_of([9, 7, 5])
    outputs = []
    for attending in (stock, module):
        attending.to(dtype).train(training)
        torch.manual_seed(1)
        outputs.append(attending(states, states, states, mask=mask, attn_type="self")[0])
    torch.testing.assert_close(*outputs, rtol=0, atol=10 * torch.finfo(dtype).eps)


of_all_alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, 1.7, [-2.0, 3.0], [0.5]], ids=str)


@of_all_alphas
def test_learned_alphas_alone_are_parameters(alpha: float | list[float]) -> None:
    names = dict(attention(alpha, heads=2).named_parameters())
    assert ("a" in names) == isinstance(alpha, list)


@pytest.mark.parametrize(
    ("returns_weights", "training"),
    [
        pytest.param(True, False, id="with weights"),
        pytest.param(False, False, id="without weights"),
        pytest.param(False, True, id="in training"),
    ],
)
@pytest.mark.parametrize(("attn_type", "relative"), [("self", 2), ("context", 0)])
@of_all_alphas
def test_gradients_are_finite_differences(
    alpha: float | list[float],
    relative: int,
    attn_type: str,
    returns_weights: bool,
    training: bool,
) -> None:
    """In inputs, all weights, and the parameters of learned alphas."""
    module = attention(alpha, relative, heads=2).train(training)
    module.returns_weights = returns_weights
    is_self = attn_type == "self"
    query, memory = torch.randn(2, 3, 4).double(), torch.randn(2, 4, 4).double()
    mask = mask_of([3, 2] if is_self else [4, 2])
    names = [name for name, _ in module.named_parameters()]

    def run(query: Tensor, *parameters: Tensor) -> Tensor:
        keys = query if is_self else memory
        output, _ = torch.func.functional_call(
            module,
            dict(zip(names, parameters, strict=True)),
            (keys, keys, query),
            {"mask": mask, "attn_type": attn_type},
        )
        return output

    inputs = [tensor.requires_grad_() for tensor in (query, *module.parameters())]
    assert torch.autograd.gradcheck(run, inputs)


# --- models: two layers with two heads, each of which attends in three kinds -----------------


@pytest.fixture(scope="module")
def fixed() -> SparseNMTModel:
    return build_model(TRANSFORMER, VOCABULARIES)


@pytest.fixture(scope="module")
def learned() -> SparseNMTModel:
    return build_model(LEARNED, VOCABULARIES)


@pytest.fixture(scope="module")
def shared() -> SparseNMTModel:
    """A model whose heads share one alpha in the attention to the source."""
    config = dataclasses.replace(TRANSFORMER, context_attention_alpha="learned_shared")
    return build_model(config, VOCABULARIES)


def test_each_head_has_a_learned_alpha(fixed: SparseNMTModel, learned: SparseNMTModel) -> None:
    kinds, layers, heads_of_a_layer = 3, 2, 2
    alphas_in_all = kinds * layers * heads_of_a_layer
    assert count_parameters(learned) - count_parameters(fixed) == alphas_in_all
    heads = [heads for layers in learned_alphas(learned).values() for heads in layers]
    assert [len(alphas) for alphas in heads] == [2] * 6


def test_learned_alphas_begin_at_different_numbers_between_1_and_2(learned: SparseNMTModel) -> None:
    layers = [heads for kind in learned_alphas(learned).values() for heads in kind]
    alphas = [alpha for heads in layers for alpha in heads]
    assert len({*alphas}) == 12
    assert all(1 < alpha < 2 for alpha in alphas)


def test_learned_alphas_are_in_all_kinds_of_attention(learned: SparseNMTModel) -> None:
    assert {*attentions(learned)} == {*learned_alphas(learned)} == {*KINDS}


def test_a_model_of_fixed_alphas_has_no_learned_ones(fixed: SparseNMTModel) -> None:
    assert learned_alphas(fixed) == {}


def test_all_heads_of_a_kind_may_share_one_alpha(
    fixed: SparseNMTModel, shared: SparseNMTModel
) -> None:
    assert count_parameters(shared) - count_parameters(fixed) == 1
    alphas = learned_alphas(shared)
    assert {*alphas} == {"context"}
    assert len({alpha for heads in alphas["context"] for alpha in heads}) == 1


def test_a_shared_alpha_is_shown_as_such(shared: SparseNMTModel) -> None:
    assert "shared" in repr(shared.decoder)


@pytest.mark.parametrize("changes", [{}, {"param_init": 0.0}, {"param_init_glorot": True}])
def test_learned_alphas_are_drawn_last_and_change_no_other_weight(changes: dict[str, Any]) -> None:
    models = []
    for config in (TRANSFORMER, LEARNED, LEARNED):
        torch.manual_seed(7)
        models.append(build_model(dataclasses.replace(config, **changes), VOCABULARIES))
    plain, learned, again = (dict(model.named_parameters()) for model in models)
    alphas = {name for name in learned if name.rpartition(".")[2] == "a"}
    assert {*learned} - {*plain} == alphas
    for name, weight in learned.items():
        assert weight.equal(again[name])
        assert name in alphas or weight.equal(plain[name])


def loss_of(model: SparseNMTModel, examples: list[Example]) -> float:
    """Return the sum of the losses of a batch."""
    hidden, target = model.hidden_states(make_batch(examples, VOCABULARIES))
    return float(model.generator.loss(hidden, target, PAD).loss.detach())


@pytest.mark.parametrize("config", [TRANSFORMER, LEARNED], ids=["softmax", "learned"])
def test_the_loss_of_a_sentence_does_not_depend_on_its_batch(config: ModelConfig) -> None:
    torch.manual_seed(2)
    model = build_model(dataclasses.replace(config, param_init=0.5), VOCABULARIES).double()
    pairs = [([2, 3, 4, 7], [5, 6]), ([7], [4, 4, 5, 9, 8]), ([5, 2], [9])]
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    alone = sum(loss_of(model, [example]) for example in examples)
    for order in itertools.permutations(examples):
        assert loss_of(model, [*order]) == pytest.approx(alone, abs=1e-9)


def difference_of_two_passes(module: EntmaxMultiHeadedAttention) -> Tensor:
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


def test_large_parameters_are_softmax_and_sparsemax() -> None:
    """Where sigmoid(a) rounds to 0 or 1, alpha is 1 or 2, and gradients are finite."""
    module = attention([-800.0, 800.0, -40.0, 40.0])
    inputs = torch.randn(2, 5, 8).double()
    module(inputs, inputs, inputs, attn_type="self")[0].square().sum().backward()
    assert torch.as_tensor(module.alphas()).tolist() == [1, 2, 1, 2]
    assert all(p.grad.isfinite().all() for p in module.parameters())
