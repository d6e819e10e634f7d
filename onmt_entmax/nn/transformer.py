"""OpenNMT-py's Transformer with alpha-entmax in its attention.

Source: Correia, Niculae and Martins (2019), "Adaptively Sparse Transformers". Alpha is a number or
learned. Layers and the names of the weights are OpenNMT-py's; `use_entmax` replaces the attention
of a built encoder and decoder.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from onmt_entmax.config import ATTENTION_KINDS, LEARNED, SHARED
from onmt_entmax.nn.multi_headed_attention import EntmaxMultiHeadedAttention
from onmt_entmax.nn.parts import DecoderPart, EncoderPart
from onmt_entmax.opennmt import (
    MultiHeadedAttention,
    NMTModel,
    TransformerDecoder,
    TransformerEncoder,
)


class PaddedTransformerEncoder(EncoderPart, TransformerEncoder):
    """OpenNMT-py's encoder for sources with any padding, which reads nothing back from a GPU.

    OpenNMT-py's own encoder waits for the largest length, and refuses sources that are padded
    beyond it.
    """

    why_not_padded = None

    def forward(self, src: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode.

        Args:
            src: ids ``(source length, batch, 1)``.
            lengths: lengths of the sources without padding, ``(batch,)``, on the same device.

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
    """OpenNMT-py's `TransformerDecoder`, in which all rows of a step are at the same position."""

    why_not_padded = None
    can_join = False


def use_entmax(
    encoder: TransformerEncoder,
    decoder: TransformerDecoder,
    alphas: Mapping[str, float | str],
    heads: int,
) -> None:
    """Replace the multi-headed attention of OpenNMT-py's Transformer, in place.

    Learned alphas are left for the caller to initialise. Average attention is not replaced.

    Args:
        encoder: the encoder whose attention is replaced.
        decoder: the decoder whose attention is replaced.
        alphas: alpha of each of `ATTENTION_KINDS`: a number, `LEARNED` or `SHARED`.
        heads: number of heads of each attention.
    """
    shared = {
        kind: nn.Parameter(torch.zeros(1)) for kind in ATTENTION_KINDS if alphas[kind] == SHARED
    }
    last = decoder.transformer_layers[-1]
    for place in _places(encoder, decoder):
        configured = alphas[place.kind]
        alpha: float | nn.Parameter
        if configured == LEARNED:
            alpha = nn.Parameter(torch.zeros(heads))
        elif configured == SHARED:
            alpha = shared[place.kind]
        else:
            alpha = float(configured)
        # OpenNMT-py's decoder returns the weights of its last layer.
        returns_weights = place.kind == "context" and place.layer is last
        replacement = EntmaxMultiHeadedAttention(place.attention, alpha, returns_weights)
        setattr(place.layer, place.attribute, replacement)


class _Place(NamedTuple):
    """Where a multi-headed attention is."""

    kind: str
    """One of `ATTENTION_KINDS`."""
    layer: nn.Module
    attribute: str
    """The attribute of the layer that has the attention."""

    @property
    def attention(self) -> Any:
        """The attention module there."""
        return getattr(self.layer, self.attribute)


def _places(encoder: TransformerEncoder, decoder: TransformerDecoder) -> Iterator[_Place]:
    """Yield the places of multi-headed attention, kind by kind, without average attention."""
    for layer in encoder.transformer:
        yield _Place("encoder", layer, "self_attn")
    for layer in decoder.transformer_layers:
        if isinstance(layer.self_attn, MultiHeadedAttention):
            yield _Place("decoder", layer, "self_attn")
    for layer in decoder.transformer_layers:
        yield _Place("context", layer, "context_attn")


def attentions(model: NMTModel) -> dict[str, list[EntmaxMultiHeadedAttention]]:
    """Return a Transformer's attention modules by kind, first layer first; {} for other models."""
    by_kind: dict[str, list[EntmaxMultiHeadedAttention]] = {}
    if hasattr(model.decoder, "transformer_layers"):
        for place in _places(model.encoder, model.decoder):
            by_kind.setdefault(place.kind, []).append(place.attention)
    return by_kind


def alpha_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the distinct parameters `a` of learned alphas."""
    modules = [m for m in model.modules() if isinstance(m, EntmaxMultiHeadedAttention)]
    # Attentions of one kind may share a parameter.
    return list(dict.fromkeys(module.a for module in modules if module.a is not None))


@torch.no_grad()
def learned_alphas(model: NMTModel) -> dict[str, list[list[float]]]:
    """Return the learned alphas of each kind, by layer and head, rounded to six decimals."""
    learned: dict[str, list[list[float]]] = {}
    for kind, modules in attentions(model).items():
        for module in modules:
            alphas = module.alphas()  # (heads,), or a number that is not learned
            if isinstance(alphas, Tensor):
                rounded = [round(alpha, 6) for alpha in alphas.tolist()]
                learned.setdefault(kind, []).append(rounded)
    return learned
