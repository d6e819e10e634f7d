"""A Transformer's attention with alpha-entmax: weights, gradients, learned alphas."""

import copy
import dataclasses
import itertools

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model, count_parameters
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


def attention(
    alpha: float | list[float], relative: int = 0, heads: int = 4
) -> EntmaxMultiHeadedAttention:
    """Return attention of heads of size 2, in float64, that returns its weights."""
    torch.manual_seed(0)
    stock = MultiHeadedAttention(heads, 2 * heads, dropout=0.0, max_relative_positions=relative)
    given = nn.Parameter(torch.tensor(alpha)) if isinstance(alpha, list) else alpha
    return EntmaxMultiHeadedAttention(stock, given, returns_weights=True).double()


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)).expand(len(lengths), 1, -1) >= torch.tensor(lengths).view(
        -1, 1, 1
    )


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, [-2.0, 0.0, 1.0, 3.0], [0.5]])
def test_weights_are_entmax_of_each_heads_scores_and_zero_where_masked(
    alpha: float | list[float],
) -> None:
    module = attention(alpha).eval()
    memory, queries = torch.randn(2, 6, 8).double(), torch.randn(2, 3, 8).double()
    output, weights = module(memory, memory, 4 * queries, mask=mask_of([6, 4]), attn_type="context")
    learned = 1 + torch.tensor(alpha).sigmoid() if isinstance(alpha, list) else torch.tensor(alpha)
    alphas = learned.double().expand(4).tolist()
    contexts = []
    for row, length in enumerate([6, 4]):
        for head, one in enumerate(alphas):
            part = slice(2 * head, 2 * head + 2)
            query = module.linear_query(4 * queries[row])[:, part]
            keys, values = (
                layer(memory[row, :length])[:, part]
                for layer in (module.linear_keys, module.linear_values)
            )
            wanted = entmax(query @ keys.t() / 2**0.5, one)
            torch.testing.assert_close(weights[row, head, :, :length], wanted)
            contexts.append(wanted @ values)
        assert not weights[row, :, :, length:].any()
    heads = torch.stack(contexts).view(2, 4, 3, 2).transpose(1, 2).flatten(2)
    torch.testing.assert_close(output, module.final_linear(heads))
    module.returns_weights = False
    without, none = module(memory, memory, 4 * queries, mask=mask_of([6, 4]), attn_type="context")
    torch.testing.assert_close(without, output)
    assert none.shape == (2, 1, 3, 0)


def gradients_are_right(module: EntmaxMultiHeadedAttention, attn_type: str) -> bool:
    """Compare gradients with finite differences, in inputs and all weights."""
    query, memory = torch.randn(2, 3, 4).double(), torch.randn(2, 4, 4).double()
    memory = query if attn_type == "self" else memory
    lengths = [3, 2] if attn_type == "self" else [4, 2]
    names = [name for name, _ in module.named_parameters()]
    inputs = [tensor.requires_grad_() for tensor in (query, *module.parameters())]

    def run(query: Tensor, *weights: Tensor) -> Tensor:
        keys = query if attn_type == "self" else memory
        arguments = {"mask": mask_of(lengths), "attn_type": attn_type}
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(module, given, (keys, keys, query), arguments)[0]

    return torch.autograd.gradcheck(run, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relative_positions_are_those_of_opennmt(dtype: torch.dtype) -> None:
    """Also of keys that are farther than the largest distance on both sides, and with dropout."""
    stock = MultiHeadedAttention(2, 4, dropout=0.5, max_relative_positions=2)
    module = EntmaxMultiHeadedAttention(copy.deepcopy(stock), 1.0, returns_weights=False)
    states, mask = torch.randn(3, 9, 4, dtype=dtype), mask_of([9, 7, 5])
    for training in (True, False):
        found = []
        for each in (stock, module):
            each.to(dtype).train(training)
            torch.manual_seed(1)
            found.append(each(states, states, states, mask=mask, attn_type="self")[0])
        torch.testing.assert_close(*found, rtol=0, atol=10 * torch.finfo(dtype).eps)


@pytest.mark.parametrize(("attn_type", "relative"), [("self", 2), ("context", 0)])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 1.7, [-2.0, 3.0], [0.5]])
def test_gradients_in_everything_and_alpha(
    alpha: float | list[float], relative: int, attn_type: str
) -> None:
    module = attention(alpha, relative, heads=2)
    learned = module.a is not None
    assert learned == ("a" in dict(module.named_parameters()))
    for module.returns_weights in (True, False):
        assert gradients_are_right(module.eval(), attn_type)
    assert gradients_are_right(module.train(), attn_type)


def test_each_head_has_an_alpha_or_all_of_a_kind_share_one() -> None:
    fixed, learned = (build_model(config, VOCABULARIES) for config in (TRANSFORMER, LEARNED))
    assert count_parameters(learned) - count_parameters(fixed) == 3 * 2 * 2
    assert {*attentions(learned)} == {*KINDS}
    assert learned_alphas(fixed) == {}
    found = learned_alphas(learned)
    assert [len(heads) for layers in found.values() for heads in layers] == [2] * 6
    flat = [alpha for layers in found.values() for heads in layers for alpha in heads]
    assert len({*flat}) == 12
    assert all(1 < alpha < 2 for alpha in flat)
    shared = dataclasses.replace(TRANSFORMER, context_attention_alpha="learned_shared")
    model = build_model(shared, VOCABULARIES)
    assert count_parameters(model) - count_parameters(fixed) == 1
    assert {*learned_alphas(model)} == {"context"}
    assert len({a for heads in learned_alphas(model)["context"] for a in heads}) == 1
    assert "shared" in repr(model.decoder)


@pytest.mark.parametrize("changes", [{}, {"param_init": 0.0}, {"param_init_glorot": True}])
def test_learned_alphas_are_drawn_last_and_change_no_other_weight(changes: dict) -> None:
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


@pytest.mark.parametrize("config", [TRANSFORMER, LEARNED], ids=["softmax", "learned"])
def test_the_loss_of_a_sentence_does_not_depend_on_its_batch(config: ModelConfig) -> None:
    torch.manual_seed(2)
    model = build_model(dataclasses.replace(config, param_init=0.5), VOCABULARIES).double()
    pairs = [([2, 3, 4, 7], [5, 6]), ([7], [4, 4, 5, 9, 8]), ([5, 2], [9])]
    losses = []
    for order in itertools.permutations(range(3)):
        total = 0.0
        for group in ([*order], *([[i] for i in order])):
            examples = [Example(*pairs[i], i) for i in group]
            hidden, target = model.hidden_states(make_batch(examples, VOCABULARIES))
            total = float(model.generator.loss(hidden, target, PAD).loss.detach())
            losses.append((len(group), group[0], total))
    wholes = [loss for count, _, loss in losses if count == 3]
    singles = {first: loss for count, first, loss in losses if count == 1}
    assert wholes == pytest.approx([sum(singles.values())] * len(wholes), abs=1e-9)


def test_dropout_drops_weights_in_training_only() -> None:
    module = attention(1.5)
    module.update_dropout(0.5)
    inputs = torch.randn(2, 5, 8).double()

    def run() -> Tensor:
        torch.manual_seed(0)
        first = module(inputs, inputs, inputs, attn_type="self")[0]
        return first - module(inputs, inputs, inputs, attn_type="self")[0]

    assert run().abs().max() > 0.01
    module.eval()
    assert not run().any()


def test_large_parameters_are_softmax_and_sparsemax() -> None:
    """Where sigmoid(a) rounds to 0 or 1, alpha is 1 or 2, and gradients are finite."""
    module = attention([-800.0, 800.0, -40.0, 40.0])
    inputs = torch.randn(2, 5, 8).double()
    module(inputs, inputs, inputs, attn_type="self")[0].square().sum().backward()
    assert torch.as_tensor(module.alphas()).tolist() == [1, 2, 1, 2]
    assert all(p.grad.isfinite().all() for p in module.parameters())
