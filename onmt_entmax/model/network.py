"""`SparseNMTModel`, the class of all models, which training, scoring and search call."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.free_memory import check_free
from onmt_entmax.memory import evaluation_bytes, training_bytes
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.opennmt import AverageAttention, MultiHeadedAttention, NMTModel


class SparseNMTModel(NMTModel):
    """OpenNMT-py's `NMTModel` with an `OutputLayer` as its `generator`.

    Args:
        encoder: an `EncoderPart`.
        decoder: a `DecoderPart`.
        generator: the output layer.
        config: the network, from which the memory of a batch is estimated; None: without a check.

    Attributes:
        matmul_dtype: type of the factors of the LSTMs' products while training, such as
            `torch.bfloat16`; None: the weights' own. Evaluation and search always compute in the
            weights' type.
    """

    matmul_dtype: torch.dtype | None = None

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        generator: OutputLayer,
        config: ModelConfig | None = None,
    ) -> None:
        super().__init__(encoder, decoder)
        self.generator = generator
        self.config = config

    def train(self, mode: bool = True) -> SparseNMTModel:
        """Switch to training or evaluation mode."""
        for part in (self.encoder, self.decoder):
            part.use_matmul_dtype(self.matmul_dtype if mode else None)
        super().train(mode)
        return self

    def update_dropout(self, dropout: float, attention_dropout: float) -> None:
        """Set the dropout of every layer to what `build_model` would set it to.

        OpenNMT-py 2.3.0's method of the same name fails for average attention, which has no
        dropout, and misses the layers of a recurrent decoder and the positions of a recurrent
        encoder.

        Args:
            dropout: probability, outside of a Transformer's attention.
            attention_dropout: probability in a Transformer's attention.
        """
        attention_layers = {
            layer
            for module in self.modules()
            if isinstance(module, (MultiHeadedAttention, AverageAttention))
            for layer in module.modules()
        }
        for layer in self.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = attention_dropout if layer in attention_layers else dropout
            elif isinstance(layer, nn.RNNBase):
                layer.dropout = dropout

    def hidden_states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the decoder's outputs for the targets of a batch, by teacher forcing.

        Returns:
            Outputs ``(rows, hidden)``, and the target ids ``(rows,)`` that they predict. There is a
            row for each target position, end symbols included, in an order that the decoder
            chooses. A decoder that cannot skip padding also has rows for padding, whose target is
            `<blank>`.

        Raises:
            MemoryError: a sentence is so long that the batch needs more memory than is free.
        """
        assert batch.target is not None, "training and scoring need targets"
        assert batch.target_lengths is not None
        self._check_memory(batch.source, batch.target)
        # The decoder reads all target ids but the last, and predicts all but the first.
        inputs = batch.target[:-1]
        targets = batch.target[1:].flatten()
        lengths = batch.source_lengths.to(batch.source.device)
        outputs, positions = self.teacher_forced(
            batch.source, lengths, inputs, batch.target_lengths - 1
        )
        return outputs, targets if positions is None else targets[positions]

    def _check_memory(self, source: Tensor, target: Tensor) -> None:
        """Check that a batch fits in memory: source and target ids, ``(length, batch, 1)``.

        Raises:
            MemoryError: it does not.
        """
        if self.config is None:
            return
        needed_bytes = training_bytes if self.training else evaluation_bytes
        source_length, sentences, _ = source.shape
        needed = needed_bytes(self.config, sentences, source_length, len(target))
        check_free(needed, source.device)

    def teacher_forced(
        self, source: Tensor, lengths: Tensor, inputs: Tensor, target_lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Encode sources, and run the decoder on given target ids.

        `hidden_states` does so for a batch, after it has checked that there is enough memory.

        Args:
            source: ids ``(source length, batch, 1)``.
            lengths: the lengths of the sources, ``(batch,)``, on the same device.
            inputs: decoder input ids ``(steps, batch, 1)``.
            target_lengths: see `DecoderPart.teacher_forced`.

        Returns:
            Outputs ``(rows, hidden)`` and their positions; see `DecoderPart.teacher_forced`.
        """
        state, memory_bank, lengths = self.encoder(source, lengths)
        self.decoder.init_state(source, memory_bank, state)
        return self.decoder.teacher_forced(inputs, target_lengths, memory_bank, lengths)


def count_parameters(model: nn.Module) -> int:
    """Return the number of weights; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def device_of(model: nn.Module) -> torch.device:
    """Return the model's device."""
    return next(model.parameters()).device
