"""Attention of all heads of a Transformer: weights along given targets, and alphas.

Weights of one kind of attention are `(layers, heads, queries, keys)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.nn.transformer import attentions
from tools.papers.forced_steps import Pair

Floats = NDArray[np.float64]


@torch.inference_mode()
def attend(
    loaded: LoadedModel, pairs: Sequence[Pair], batch_size: int = 32
) -> Iterator[tuple[int, dict[str, Floats]]]:
    """Yield the weights of all heads along given targets, ordered by source length.

    Args:
        loaded: a Transformer.
        pairs: source tokens and target ids.
        batch_size: sentences of a batch.

    Yields:
        The index of a pair, and by kind of attention its weights `(layers, heads, queries, keys)`.
        A decoder's self-attention has zeros above its diagonal.
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
                yield index, _weights_of(row, lengths, modules, returned)


@contextmanager
def _returning_weights(modules: Mapping[str, Sequence[Any]]) -> Iterator[dict[Any, Tensor]]:
    """Let attention modules return their weights, which is slower, inside the block.

    Args:
        modules: those of the layers, by kind of attention.

    Yields:
        By module, the weights of the last batch, `(batch, heads, queries, keys)`.
    """
    returned: dict[Any, Tensor] = {}

    def keep(module: Any, _: Any, output: Any) -> None:
        returned[module] = output[1]

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
    modules: Mapping[str, Sequence[Any]],
    returned: Mapping[Any, Tensor],
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


def head_alphas(model: Any) -> dict[str, Floats]:
    """Return the alpha of each head, learned or fixed, `(layers, heads)` by kind of attention."""
    alphas = {}
    for kind, layers in attentions(model).items():
        rows = [torch.as_tensor(layer.alphas()).expand(layer.head_count) for layer in layers]
        alphas[kind] = torch.stack(rows).detach().double().numpy()
    return alphas
