"""The interface of encoders and decoders: base classes beside OpenNMT-py's.

Each encoder of `build_model` is an `EncoderPart`, each decoder a `DecoderPart`. What is defined
here holds for OpenNMT-py's own modules; this package's modules override it.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.opennmt import MeanEncoder, StdRNNDecoder


class Part:
    """Base of encoders and decoders, beside a `torch.nn.Module`.

    Attributes:
        matmul_dtype: type to which the factors of products with weights are rounded; None keeps
            the weights' type.
        why_not_padded: None if the part can train on batches that are padded to few shapes, as CUDA
            graphs need; else the reason, for the log.
    """

    matmul_dtype: torch.dtype | None = None
    why_not_padded: str | None = None

    def use_matmul_dtype(self, dtype: torch.dtype | None) -> None:
        """Set `matmul_dtype`. Here this does nothing: OpenNMT-py's modules round no factors."""


class EncoderPart(Part):
    """Base of encoders, beside OpenNMT-py's class.

    Attributes:
        is_float32_only: whether the encoder fails in float64.
    """

    why_not_padded: str | None = "the encoder is not an LSTM of type rnn or brnn without positions"
    is_float32_only = False

    def with_matmul_dtype(self, dtype: torch.dtype | None) -> Any:
        """Return a copy with the same weights, and another `matmul_dtype`."""
        encoder = copy(self)
        encoder.use_matmul_dtype(dtype)
        return encoder


class DecoderPart(Part):
    """Base of decoders, beside OpenNMT-py's class.

    Attributes:
        can_join: whether a batch of a step may have rows at different target positions.
    """

    why_not_padded: str | None = "the decoder is not an input-feeding LSTM with global attention"
    can_join = True

    def teacher_forced(
        self: Any,
        tgt: Tensor,
        target_lengths: Tensor | None,
        memory_bank: Tensor,
        memory_lengths: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs for padded targets, from the state of `init_state`.

        It calls OpenNMT-py's decoder, which `self` is too; hence no type.

        Args:
            tgt: decoder input ids ``(tgt_len, batch, nfeats)``.
            target_lengths: decoder steps of each sentence, ``(batch,)``; None: all have tgt_len.
            memory_bank: source vectors ``(src_len, batch, hidden)``.
            memory_lengths: real source vectors of each sentence, ``(batch,)``.

        Returns:
            Outputs ``(rows, hidden)``, and their positions ``(rows,)`` in the flattened
            ``(tgt_len * batch)``; None: all positions in order, padding too.
        """
        outputs, _ = self(tgt, memory_bank, memory_lengths=memory_lengths)
        return outputs.flatten(0, 1), None

    def search_step(self, vocabulary_size: int, dtype: torch.dtype | None) -> Any:
        """Return a `DecoderStep`, or None if a search takes the steps of the module.

        Args:
            vocabulary_size: of the target.
            dtype: of the factors of products.
        """
        return None


class MeanEncoderPart(EncoderPart, MeanEncoder):
    """OpenNMT-py's `MeanEncoder`, whose masks are float32."""

    is_float32_only = True


class StdRNNDecoderPart(DecoderPart, StdRNNDecoder):
    """OpenNMT-py's `StdRNNDecoder`, which has no input feeding."""
