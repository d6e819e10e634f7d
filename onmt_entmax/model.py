"""The model: OpenNMT-py's encoder and decoder, entmax attention, and the output layer.

`build_model` makes one from a configuration, with random weights; `checkpoint` reads others:

    _encoder_class, _decoder_class     which classes, of `recurrence/` or `nn/`
    _replace_attention                 entmax attention with the configured alphas
    initial_weights.py                 which weights are one, random values, which are trained
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.config import ConfigError, ModelConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.exhaustion import check_free
from onmt_entmax.initial_weights import freeze, initialise, share_weights
from onmt_entmax.memory import refuse_too_large, training_bytes
from onmt_entmax.nn.attention import ATTENTIONS, EntmaxGlobalAttention
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.nn.parts import MeanEncoderPart, StdRNNDecoderPart
from onmt_entmax.nn.transformer import (
    PaddedTransformerEncoder,
    TransformerDecoderPart,
    use_entmax,
)
from onmt_entmax.opennmt import (
    AverageAttention,
    Embeddings,
    MultiHeadedAttention,
    NMTModel,
)
from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder, InputFeedDecoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder

# About how many times the memory of an evaluation training needs: it keeps attention weights, and
# computes gradients of them and of scores.
_TRAINING_TO_EVALUATION = 4


class SparseNMTModel(NMTModel):
    """OpenNMT-py's `NMTModel` with an `OutputLayer` as its `generator`.

    Args:
        encoder: an `EncoderPart`.
        decoder: a `DecoderPart`.
        generator: the output layer.
        config: of the network; None leaves batches that are too large to fail by themselves.

    Attributes:
        matmul_dtype: of the products in the LSTMs while training, `torch.bfloat16` or None for the
            weights' own. Evaluation and search always compute in the weights' type.
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
        """Change the dropout of every module that has some, as if the model had been built so.

        OpenNMT-py 2.3.0's method of the same name fails for average attention, which has none, and
        misses the layers of a recurrent decoder and the positions of a recurrent encoder.
        """
        in_attention = {
            part
            for module in self.modules()
            if isinstance(module, (MultiHeadedAttention, AverageAttention))
            for part in module.modules()
        }
        for part in self.modules():
            if isinstance(part, nn.Dropout):
                part.p = attention_dropout if part in in_attention else dropout
            elif isinstance(part, nn.RNNBase):
                part.dropout = dropout

    def hidden_states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the decoder's outputs for a batch with targets, by teacher forcing.

        Returns:
            Outputs ``(rows, hidden)``, and the target ids ``(rows,)`` that they predict. The order
            is any in which neighbouring columns of equal length stay next to each other. Decoders
            that cannot skip padding return rows for it too, with the id of `<blank>`.

        Raises:
            MemoryError: a sentence is so long that the batch needs more memory than is free.
        """
        assert batch.target is not None, "training and scoring need targets"
        assert batch.target_lengths is not None
        if self.config is not None:
            needed = training_bytes(self.config, len(batch), len(batch.source), len(batch.target))
            if not self.training:
                needed //= _TRAINING_TO_EVALUATION
            check_free(needed, batch.source.device)
        inputs = batch.target[:-1]
        targets = batch.target[1:].flatten()
        lengths = batch.source_lengths.to(batch.source.device)
        outputs, index = self.teacher_forced(
            batch.source, lengths, inputs, batch.target_lengths - 1
        )
        return outputs, targets if index is None else targets[index]

    def teacher_forced(
        self, source: Tensor, lengths: Tensor, inputs: Tensor, target_lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Encode sources and run the decoder on given targets.

        Args:
            source: ids ``(source length, batch, 1)``.
            lengths: of the sources, ``(batch,)``, on the same device.
            inputs: decoder input ids ``(steps, batch, 1)``.
            target_lengths: see `DecoderPart.teacher_forced`, which returns the result.
        """
        state, memory_bank, lengths = self.encoder(source, lengths)
        self.decoder.init_state(source, memory_bank, state)
        return self.decoder.teacher_forced(inputs, target_lengths, memory_bank, lengths)


def _opennmt_options(config: ModelConfig) -> SimpleNamespace:
    """Return the namespace that OpenNMT-py's `from_opt` constructors read."""
    values = asdict(config)
    if ATTENTIONS.get(config.global_attention, EntmaxGlobalAttention) is not EntmaxGlobalAttention:
        values["global_attention"] = "dot"  # OpenNMT-py knows no other types
    return SimpleNamespace(
        **values,
        brnn=config.encoder_type == "brnn",
        enc_rnn_size=config.rnn_size,
        dec_rnn_size=config.rnn_size,
        # `build_model` replaces the attention that OpenNMT-py builds from these.
        global_attention_function="softmax",
        coverage_attn=False,
        copy_attn=False,
        reuse_copy_attn=False,
        copy_attn_type="none",
        full_context_alignment=False,
        alignment_layer=-2,
        alignment_heads=0,
    )


def _embeddings(config: ModelConfig, vocabularies: Vocabularies) -> tuple[Embeddings, Embeddings]:
    """Return the embeddings of source and target.

    A recurrent decoder gets no positions: its state counts steps, and OpenNMT-py 2.3.0 trains it
    with all positions but searches with the first one only.
    """
    source = Embeddings(
        config.src_word_vec_size,
        len(vocabularies.source),
        vocabularies.source.pad,
        position_encoding=config.position_encoding,
        dropout=config.dropout,
    )
    target = Embeddings(
        config.tgt_word_vec_size,
        len(vocabularies.target),
        vocabularies.target.pad,
        position_encoding=config.position_encoding and config.decoder_type == "transformer",
        dropout=config.dropout,
    )
    return source, target


def _encoder_class(config: ModelConfig) -> type[Any]:
    """Return the class of the encoder; LSTMs without positions have a fast one."""
    if config.encoder_type == "transformer":
        return PaddedTransformerEncoder
    if config.encoder_type == "mean":
        return MeanEncoderPart
    is_fast = config.rnn_type == "LSTM" and not config.position_encoding
    return FastRNNEncoder if is_fast else BridgedRNNEncoder


def _decoder_class(config: ModelConfig) -> type[Any]:
    """Return the class of the decoder; input-feeding LSTMs with attention have a fast one."""
    if config.decoder_type == "transformer":
        return TransformerDecoderPart
    if not config.input_feed:
        return StdRNNDecoderPart
    has_gate = config.context_gate is not None
    has_attention = config.global_attention != "none"
    is_fast = config.rnn_type == "LSTM" and has_attention and not has_gate
    return FastInputFeedRNNDecoder if is_fast else InputFeedDecoder


def build_model(config: ModelConfig, vocabularies: Vocabularies) -> SparseNMTModel:
    """Build a model with random weights from torch's global generator.

    Args:
        config: the network.
        vocabularies: give sizes and padding ids.

    Raises:
        ConfigError: the network shares embeddings, and there are two vocabularies.
        TooLargeError: the weights do not fit in memory.
        ValueError: torch's default type has 16 bits; weights would be rounded to it.
    """
    _refuse_short_default_type()
    if config.share_embeddings and vocabularies.source != vocabularies.target:
        raise ConfigError("share_embeddings", "needs one vocabulary for both sides")
    refuse_too_large(config, vocabularies)
    options = _opennmt_options(config)
    source_embeddings, target_embeddings = _embeddings(config, vocabularies)
    with warnings.catch_warnings():
        # torch warns that a single layer has no dropout between layers: nothing a user can change.
        warnings.filterwarnings("ignore", "dropout option adds dropout")
        encoder = _encoder_class(config).from_opt(options, source_embeddings)
        decoder = _decoder_class(config).from_opt(options, target_embeddings)
    _replace_attention(encoder, decoder, config)
    generator = OutputLayer(config.rnn_size, len(vocabularies.target), config.generator_alpha)
    model = SparseNMTModel(encoder, decoder, generator, config)
    share_weights(model, config)
    initialise(model, config)
    freeze(model, config)
    return model


def _refuse_short_default_type() -> None:
    """Raise a ValueError if torch makes new weights in a type of 16 bits."""
    if torch.get_default_dtype().itemsize < 4:
        raise ValueError(
            f"networks are built in torch's default type, {torch.get_default_dtype()}, which is "
            "too short: call torch.set_default_dtype(torch.float32) before"
        )


def _replace_attention(encoder: nn.Module, decoder: nn.Module, config: ModelConfig) -> None:
    """Give the parts attention with their alphas in place of OpenNMT-py's."""
    if config.decoder_type == "transformer":
        use_entmax(encoder, decoder, config.attention_alphas, config.heads)
    elif config.global_attention != "none":
        attention = ATTENTIONS[config.global_attention]
        decoder.attn = attention(
            config.rnn_size, config.global_attention, config.global_attention_alpha
        )


def count_parameters(model: nn.Module) -> int:
    """Return the number of weights, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def device_of(model: nn.Module) -> torch.device:
    """Return the model's device."""
    return next(model.parameters()).device
