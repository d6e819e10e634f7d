"""Attention of all heads of a Transformer: weights along given targets, and alphas.

Weights of one kind of attention are `(layers, heads, queries, keys)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.nn.multi_headed_attention import EntmaxMultiHeadedAttention
from onmt_entmax.nn.transformer import attentions
from onmt_entmax.opennmt import NMTModel
from tools.papers.forced_steps import Pair

Floats = NDArray[np.float64]
ModulesByKind = Mapping[str, Sequence[EntmaxMultiHeadedAttention]]  # those of the layers


class PairWeights(NamedTuple):
    """The weights of all heads for one pair.

    Attributes:
        pair: index of the pair.
        by_kind: weights `(layers, heads, queries, keys)` by kind of attention.
    """

    pair: int
    by_kind: dict[str, Floats]


@torch.inference_mode()
def attend(
    loaded: LoadedModel, pairs: Sequence[Pair], batch_size: int = 32
) -> Iterator[PairWeights]:
    """Yield the weights of all heads along given targets, ordered by source length.

    Args:
        loaded: a Transformer.
        pairs: source tokens and target ids.
        batch_size: sentences of a batch.

    Yields:
        The weights of each pair. A decoder's self-attention has zeros above its diagonal.
    """
    encode = loaded.vocabularies.source.encode
    examples = [
        Example(encode(source), target, index) for index, (source, target) in enumerate(pairs)
    ]
    examples.sort(key=lambda example: len(example.source))
    modules = attentions(loaded.model)
    with _returning_weights(modules) as returned:
        for first in range(0, len(examples), batch_size):
            batch = make_batch(examples[first : first + batch_size], loaded.vocabularies)
            loaded.model.hidden_states(batch)
            for row, index in enumerate(batch.indices):
                source, target = pairs[index]
                lengths = _Lengths(len(source), len(target) + 1)  # with the end symbol
                yield PairWeights(index, _weights_of(row, lengths, modules, returned))


@contextmanager
def _returning_weights(
    modules: ModulesByKind,
) -> Iterator[dict[EntmaxMultiHeadedAttention, Tensor]]:
    """Let attention modules return their weights, which is slower, inside the block.

    Args:
        modules: those of the layers, by kind of attention.

    Yields:
        By module, the weights of the last batch, `(batch, heads, queries, keys)`.
    """
    returned: dict[EntmaxMultiHeadedAttention, Tensor] = {}

    def keep(module: EntmaxMultiHeadedAttention, _: object, output: Sequence[Tensor]) -> None:
        _, returned[module] = output

    with ExitStack() as stack:
        for module in (module for layers in modules.values() for module in layers):
            stack.callback(setattr, module, "returns_weights", module.returns_weights)
            stack.callback(module.register_forward_hook(keep).remove)
            module.returns_weights = True
        yield returned


class _Lengths(NamedTuple):
    """The number of source tokens, and of target steps, of a sentence pair."""

    source: int
    target: int


def _weights_of(
    row: int,
    lengths: _Lengths,
    modules: ModulesByKind,
    returned: Mapping[EntmaxMultiHeadedAttention, Tensor],
) -> dict[str, Floats]:
    """Return the weights of one sentence of a batch, by kind of attention, without padding.

    Args:
        row: row of the sentence in the batch.
        lengths: lengths of the sentence, without padding.
        modules: those of the layers, by kind of attention.
        returned: their weights of the batch.
    """
    source, target = lengths
    sizes = {"encoder": (source, source), "decoder": (target, target), "context": (target, source)}
    weights = {}
    for kind, layers in modules.items():
        queries, keys = sizes[kind]
        stacked = torch.stack([returned[layer][row] for layer in layers])
        weights[kind] = stacked[..., :queries, :keys].double().numpy()
    return weights


def head_alphas(model: NMTModel) -> dict[str, Floats]:
    """Return the alpha of each head, learned or fixed, `(layers, heads)` by kind of attention."""
    alphas = {}
    for kind, layers in attentions(model).items():
        rows = [torch.as_tensor(layer.alphas()).expand(layer.head_count) for layer in layers]
        alphas[kind] = torch.stack(rows).detach().double().numpy()
    return alphas
