"""Build a model with random weights from a configuration."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from onmt_entmax.config import ConfigError, ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.initial_weights import freeze, initialise, tie_weights
from onmt_entmax.memory import refuse_too_large
from onmt_entmax.model.network import SparseNMTModel
from onmt_entmax.model.opennmt_options import opennmt_options
from onmt_entmax.nn.attention import ATTENTIONS
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.nn.stock_parts import MeanEncoderPart, StdRNNDecoderPart
from onmt_entmax.nn.transformer import (
    PaddedTransformerEncoder,
    TransformerDecoderPart,
    use_entmax,
)
from onmt_entmax.opennmt import Embeddings
from onmt_entmax.recurrence.bridge import BridgedRNNEncoder
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder, InputFeedDecoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder


def build_model(config: ModelConfig, vocabularies: Vocabularies) -> SparseNMTModel:
    """Build a model with random weights from torch's global generator.

    Args:
        config: the network.
        vocabularies: the vocabularies of source and target; they give the sizes of embeddings and
            output layer.

    Raises:
        ConfigError: the network shares embeddings, and there are two vocabularies.
        TooLargeError: the weights do not fit in memory.
        ValueError: torch's default type, in which weights are made, has only 16 bits.
    """
    _refuse_short_default_type()
    if config.share_embeddings and vocabularies.source != vocabularies.target:
        raise ConfigError("share_embeddings", "needs one vocabulary for both sides")
    refuse_too_large(config, vocabularies)
    encoder, decoder = _build_encoder_and_decoder(config, vocabularies)
    _replace_attention(encoder, decoder, config)
    generator = OutputLayer(config.rnn_size, len(vocabularies.target), config.generator_alpha)
    model = SparseNMTModel(encoder, decoder, generator, config)
    tie_weights(model, config)
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


def _build_encoder_and_decoder(
    config: ModelConfig, vocabularies: Vocabularies
) -> tuple[nn.Module, nn.Module]:
    """Return an encoder and a decoder whose attention is OpenNMT-py's."""
    options = opennmt_options(config)
    source_embeddings, target_embeddings = _build_embeddings(config, vocabularies)
    with warnings.catch_warnings():
        # torch warns that a single layer has no dropout between layers: nothing a user can change.
        warnings.filterwarnings("ignore", "dropout option adds dropout")
        encoder: nn.Module = _encoder_class(config).from_opt(options, source_embeddings)
        decoder: nn.Module = _decoder_class(config).from_opt(options, target_embeddings)
    return encoder, decoder


def _build_embeddings(
    config: ModelConfig, vocabularies: Vocabularies
) -> tuple[Embeddings, Embeddings]:
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


def _replace_attention(encoder: nn.Module, decoder: nn.Module, config: ModelConfig) -> None:
    """Replace OpenNMT-py's attention by entmax attention with the configured alphas."""
    if config.decoder_type == "transformer":
        use_entmax(encoder, decoder, config.attention_alphas, config.heads)
    elif config.global_attention != "none":
        attention = ATTENTIONS[config.global_attention]
        decoder.attn = attention(
            config.rnn_size, config.global_attention, config.global_attention_alpha
        )
