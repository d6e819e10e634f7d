"""OpenNMT-py's Transformer with alpha-entmax in its attention.

Source: Correia, Niculae and Martins (2019), "Adaptively Sparse Transformers". Alpha is a number or
learned. Layers and the names of the weights are OpenNMT-py's; `use_entmax` replaces the attention
of a built encoder and decoder.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.config import ATTENTION_KINDS, LEARNED, SHARED
from onmt_entmax.nn.parts import DecoderPart, EncoderPart
from onmt_entmax.opennmt import (
    MultiHeadedAttention,
    TransformerDecoder,
    TransformerEncoder,
    relative_matmul,
)
from onmt_entmax.sparse.attention import entmax_attention, entmax_attention_weights


class PaddedTransformerEncoder(EncoderPart, TransformerEncoder):
    """OpenNMT-py's encoder for sources with any padding, which reads nothing back from a GPU.

    OpenNMT-py's own waits for the largest length, and takes no source padded beyond it.
    """

    why_not_padded = None

    def forward(self, src: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode.

        Args:
            src: ids ``(source length, batch, 1)``.
            lengths: of the sources without padding, ``(batch,)``, on the same device.

        Returns:
            Embeddings and source vectors ``(source length, batch, dim)``, and the lengths.
        """
        embedded = self.embeddings(src)
        padded = torch.arange(len(src), device=src.device) >= lengths.unsqueeze(1)
        states = embedded.transpose(0, 1).contiguous()
        for layer in self.transformer:
            states = layer(states, padded.unsqueeze(1))
        return embedded, self.layer_norm(states).transpose(0, 1).contiguous(), lengths


class TransformerDecoderPart(DecoderPart, TransformerDecoder):
    """OpenNMT-py's `TransformerDecoder`, which has one position for the whole batch."""

    why_not_padded = None
    can_join = False


class EntmaxMultiHeadedAttention(MultiHeadedAttention):
    """OpenNMT-py's `MultiHeadedAttention` with alpha-entmax instead of softmax.

    A masked position has weight 0, exactly. With alpha 1 it computes what OpenNMT-py computes.

    Args:
        stock: the module that this one replaces; its layers are taken over.
        alpha: a number >= 1 for all heads, or the parameter `a` of learned alphas, ``(heads,)``, or
            ``(1,)`` if shared.
        returns_weights: see below.

    Attributes:
        alpha: the number; None if alpha is learned.
        a: the parameter; each alpha is 1 + sigmoid(a), between softmax and sparsemax. None if alpha
            is a number.
        returns_weights: whether `forward` returns the attention weights, outside of training.
            Without them attention is faster, and the second result has no keys.
    """

    def __init__(
        self, stock: MultiHeadedAttention, alpha: float | nn.Parameter, returns_weights: bool
    ) -> None:
        with torch.device("meta"):  # draws no random numbers
            super().__init__(
                stock.head_count, stock.model_dim, stock.dropout.p, stock.max_relative_positions
            )
        for name, layer in stock.named_children():
            setattr(self, name, layer)
        self.alpha = None if isinstance(alpha, nn.Parameter) else alpha
        self.register_parameter("a", alpha if isinstance(alpha, nn.Parameter) else None)
        self.returns_weights = returns_weights

    def alphas(self) -> float | Tensor:
        """Return the alpha of all heads, or if learned those of each, ``(heads,)``."""
        if self.alpha is not None:
            return self.alpha
        return (1 + torch.sigmoid(self.a)).expand(self.head_count)

    def forward(
        self,
        key: Tensor,
        value: Tensor,
        query: Tensor,
        mask: Tensor | None = None,
        layer_cache: dict[str, Any] | None = None,
        attn_type: str | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend; argument names and shapes are OpenNMT-py's.

        Args:
            key: ``(batch, keys, dim)``.
            value: ``(batch, keys, dim)``.
            query: ``(batch, queries, dim)``.
            mask: true where a query does not attend, ``(batch, queries or 1, keys)``.
            layer_cache: keys and values of earlier steps, for stepwise decoding; extended in place.
            attn_type: "self" or "context".

        Returns:
            Context vectors ``(batch, queries, dim)``, and weights ``(batch, heads, queries, keys)``
            or, without weights, ``(batch, 1, queries, 0)``.
        """
        keys, values = self._keys_and_values(key, value, layer_cache, attn_type)
        queries = self._split(self.linear_query(query))
        attended = None if mask is None else ~mask.unsqueeze(1)
        if self.max_relative_positions > 0 and attn_type == "self":
            context, weights = self._relative(queries, keys, values, attended)
        elif self.returns_weights and not self.training:
            weights = entmax_attention_weights(
                queries, keys, alpha=self.alphas(), attn_mask=attended
            )
            context = weights.to(values.dtype) @ values
        else:
            dropout = self.dropout.p if self.training else 0.0
            context = entmax_attention(
                queries, keys, values, alpha=self.alphas(), attn_mask=attended, dropout_p=dropout
            )
            weights = context.new_empty(context.size(0), 1, context.size(2), 0)
        return self.final_linear(context.transpose(1, 2).flatten(2)), weights

    def _keys_and_values(
        self,
        key: Tensor,
        value: Tensor,
        cache: dict[str, Any] | None,
        attn_type: str | None,
    ) -> tuple[Tensor, Tensor]:
        """Return projected keys and values ``(batch, heads, keys, size)``.

        With a cache, those of the source are projected in the first step alone, and those of
        earlier steps of the target are included. The cache is extended in place.
        """
        if cache is not None and attn_type == "context" and cache["memory_keys"] is not None:
            return cache["memory_keys"], cache["memory_values"]
        keys, values = self._split(self.linear_keys(key)), self._split(self.linear_values(value))
        if cache is None:
            return keys, values
        if attn_type == "context":
            cache["memory_keys"], cache["memory_values"] = keys, values
            return keys, values
        if cache["self_keys"] is not None:
            keys = torch.cat((cache["self_keys"], keys), 2)
            values = torch.cat((cache["self_values"], values), 2)
        cache["self_keys"], cache["self_values"] = keys, values
        return keys, values

    def _split(self, projected: Tensor) -> Tensor:
        """Return ``(batch, heads, length, size)`` of ``(batch, length, heads * size)``."""
        return projected.unflatten(2, (self.head_count, self.dim_per_head)).transpose(1, 2)

    def _relative(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attended: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Attend with relative positions (Shaw et al. 2018), which add to scores and values.

        Args:
            queries: of the last positions, ``(batch, heads, queries, size)``.
            keys: ``(batch, heads, keys, size)``.
            values: ``(batch, heads, keys, size)``.
            attended: true where a query attends, ``(batch, 1, queries or 1, keys)``, or None.

        Returns:
            Context vectors ``(batch, heads, queries, size)``, and weights before dropout
            ``(batch, heads, queries, keys)``.
        """
        position = torch.arange(keys.size(2), device=keys.device)
        farthest = self.max_relative_positions
        distances = position - position[-queries.size(2) :].unsqueeze(1)  # (queries, keys)
        relations = self.relative_positions_embeddings(
            distances.clamp(-farthest, farthest) + farthest
        )  # (queries, keys, size)
        added = relative_matmul(queries / math.sqrt(self.dim_per_head), relations, transpose=True)
        if attended is not None:
            added = torch.where(attended, added, -torch.inf)
        weights = entmax_attention_weights(queries, keys, alpha=self.alphas(), attn_mask=added)
        used = self.dropout(weights).to(values.dtype)
        return used @ values + relative_matmul(used, relations, transpose=False), weights

    def extra_repr(self) -> str:
        """Return alpha, for printing."""
        if self.alpha is not None:
            return f"alpha={self.alpha:g}"
        return "learned alpha" + (", shared" if self.a.numel() < self.head_count else "")


def use_entmax(encoder: Any, decoder: Any, alphas: Mapping[str, float | str], heads: int) -> None:
    """Replace the multi-headed attention of a Transformer of OpenNMT-py, in place.

    Learned alphas are to be initialised. Average attention stays.

    Args:
        encoder: OpenNMT-py's `TransformerEncoder`.
        decoder: OpenNMT-py's `TransformerDecoder`.
        alphas: by kind, see `ATTENTION_KINDS`: a number, `LEARNED` or `SHARED`.
        heads: of each attention.
    """
    shared = {
        kind: nn.Parameter(torch.zeros(1)) for kind in ATTENTION_KINDS if alphas[kind] == SHARED
    }
    last = decoder.transformer_layers[-1]
    for kind, layer, name in _places(encoder, decoder):
        alpha: Any = alphas[kind]
        if alpha == LEARNED:
            alpha = nn.Parameter(torch.zeros(heads))
        elif alpha == SHARED:
            alpha = shared[kind]
        # OpenNMT-py's decoder returns the weights of its last layer.
        returns = kind == "context" and layer is last
        setattr(layer, name, EntmaxMultiHeadedAttention(getattr(layer, name), alpha, returns))


def _places(encoder: Any, decoder: Any) -> Iterator[tuple[str, nn.Module, str]]:
    """Yield kind, layer and name in the layer of each multi-headed attention, layer by layer."""
    for layer in encoder.transformer:
        yield "encoder", layer, "self_attn"
    for layer in decoder.transformer_layers:
        if isinstance(layer.self_attn, MultiHeadedAttention):
            yield "decoder", layer, "self_attn"
    for layer in decoder.transformer_layers:
        yield "context", layer, "context_attn"


def attentions(model: Any) -> dict[str, list[EntmaxMultiHeadedAttention]]:
    """Return a Transformer's attention modules by kind, first layer first.

    Args:
        model: its encoder and decoder are searched; other models have none.
    """
    by_kind: dict[str, list[EntmaxMultiHeadedAttention]] = {}
    if hasattr(model.decoder, "transformer_layers"):
        for kind, layer, name in _places(model.encoder, model.decoder):
            by_kind.setdefault(kind, []).append(getattr(layer, name))
    return by_kind


def alpha_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the distinct parameters `a` of learned alphas."""
    modules = [m for m in model.modules() if isinstance(m, EntmaxMultiHeadedAttention)]
    # Attentions of one kind may share a parameter.
    return list(dict.fromkeys(module.a for module in modules if module.a is not None))


@torch.no_grad()
def learned_alphas(model: Any) -> dict[str, list[list[float]]]:
    """Return the learned alphas of each kind, by layer and head, to six digits."""
    learned = {}
    for kind, modules in attentions(model).items():
        of_layers = [module.alphas() for module in modules]
        if isinstance(of_layers[0], Tensor):
            learned[kind] = [
                [round(alpha, 6) for alpha in torch.as_tensor(of_heads).tolist()]
                for of_heads in of_layers
            ]
    return learned
