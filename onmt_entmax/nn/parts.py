"""Mixins for encoders and decoders: what models, trainings and searches call on any of them.

`build_model` makes encoders whose classes derive from `EncoderPart` and a class of OpenNMT-py, and
decoders whose classes derive from `DecoderPart` and another one. The defaults here describe
OpenNMT-py's own modules; classes of this package override what differs.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from onmt_entmax.recurrence.decoder_step import DecoderStep

_Encoder = TypeVar("_Encoder", bound="EncoderPart")


class Part:
    """Mixin of encoders and decoders, whose other base class is a `torch.nn.Module`.

    Attributes:
        matmul_dtype: type to which the factors of products with weights are rounded; None keeps
            the weights' type.
        why_not_padded: why the part cannot train on batches that are padded to few shapes, as CUDA
            graphs need; a text for the user. None: it can.
    """

    matmul_dtype: torch.dtype | None = None
    why_not_padded: str | None = None

    def use_matmul_dtype(self, dtype: torch.dtype | None) -> None:
        """Set `matmul_dtype` if the part can use it. By default, as in OpenNMT-py, it cannot."""


class EncoderPart(Part):
    """Mixin of encoders.

    Attributes:
        is_float32_only: whether the encoder fails in float64.
    """

    why_not_padded: str | None = "the encoder is not an LSTM of type rnn or brnn without positions"
    is_float32_only = False

    def with_matmul_dtype(self: _Encoder, dtype: torch.dtype | None) -> _Encoder:
        """Return a copy with the same weights, and another `matmul_dtype`."""
        # A shallow copy shares weights and layers. That is safe: the type is an attribute of the
        # encoder itself, so setting it leaves the original and its layers as they are.
        encoder = copy(self)
        encoder.use_matmul_dtype(dtype)
        return encoder


class _OpenNMTDecoder(Protocol):
    """The call of OpenNMT-py's decoders, which classes with `DecoderPart` inherit."""

    def __call__(
        self, tgt: Tensor, memory_bank: Tensor, *, memory_lengths: Tensor
    ) -> tuple[Tensor, Any]:
        """Return outputs ``(tgt_len, batch, hidden)``, and attention weights by name."""


class DecoderPart(Part):
    """Mixin of decoders.

    Attributes:
        can_join: whether the rows of a step in a search may be at different target positions.
    """

    why_not_padded: str | None = "the decoder is not an input-feeding LSTM with global attention"
    can_join = True

    def teacher_forced(
        self: _OpenNMTDecoder,
        tgt: Tensor,
        target_lengths: Tensor | None,
        memory_bank: Tensor,
        memory_lengths: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs for padded targets, from the state of `init_state`.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: number of decoder steps of each sentence, ``(batch,)``; None: tgt_len.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``.

        Returns:
            Outputs ``(rows, hidden)``, and their positions ``(rows,)`` in the flattened
            ``(tgt_len * batch)``; None: all positions in order, padding too.
        """
        outputs, _ = self(tgt, memory_bank, memory_lengths=memory_lengths)
        return outputs.flatten(0, 1), None

    def search_step(self, vocabulary_size: int, dtype: torch.dtype | None) -> DecoderStep | None:
        """Return the decoder prepared for a search; None: a search calls the module itself.

        Args:
            vocabulary_size: number of target tokens.
            dtype: the type of the factors of products.
        """
        return None
