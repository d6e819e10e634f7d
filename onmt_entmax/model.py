"""Building a model: OpenNMT-py's encoder and decoder, entmax attention, and our output layer."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.lstm.decoder import FastInputFeedRNNDecoder
from onmt_entmax.nn.lstm.encoder import FastRNNEncoder
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.opennmt import (
    AverageAttention,
    Embeddings,
    MultiHeadedAttention,
    NMTModel,
    RNNDecoderBase,
    str2dec,
    str2enc,
)

_WITH_ATTENTION_DROPOUT = (MultiHeadedAttention, AverageAttention)


@dataclass(frozen=True)
class ModelConfig:
    """The network; the names are OpenNMT-py's options, the two alphas are ours."""

    encoder_type: str = "rnn"  # rnn, brnn, mean or transformer
    decoder_type: str = "rnn"  # rnn or transformer
    rnn_type: str = "LSTM"  # LSTM or GRU
    enc_layers: int = 2
    dec_layers: int = 2
    rnn_size: int = 500  # of encoder and decoder states; the model size of a Transformer
    src_word_vec_size: int = 500
    tgt_word_vec_size: int = 500
    input_feed: bool = True
    bridge: bool = False
    context_gate: str | None = None  # source, target or both
    global_attention: str = "general"  # dot, general, mlp or none
    global_attention_alpha: float = 1.0
    generator_alpha: float = 1.0
    dropout: float = 0.3
    attention_dropout: float = 0.1
    position_encoding: bool = False
    share_embeddings: bool = False
    share_decoder_embeddings: bool = False
    heads: int = 8
    transformer_ff: int = 2048
    self_attn_type: str = "scaled-dot"
    max_relative_positions: int = 0
    aan_useffn: bool = False
    pos_ffn_activation_fn: str = "relu"
    param_init: float = 0.1  # uniform in (-param_init, param_init); 0 leaves PyTorch's defaults
    param_init_glorot: bool = False
    freeze_encoder: bool = False
    freeze_decoder: bool = False
    freeze_word_vecs_enc: bool = False
    freeze_word_vecs_dec: bool = False

    @property
    def dense_attention(self) -> bool:
        """Whether every source position has some weight at every step."""
        return self.global_attention_alpha == 1


class SparseNMTModel(NMTModel):
    """OpenNMT-py's `NMTModel` with an alpha-entmax output layer as its `generator`.

    Attributes:
        matmul_dtype: type of the products in the recurrences while training, `torch.bfloat16` or
            None for the weights' own; evaluation and search compute in the weights' type always.
    """

    matmul_dtype: torch.dtype | None = None

    def __init__(self, encoder: nn.Module, decoder: nn.Module, generator: OutputLayer) -> None:
        super().__init__(encoder, decoder)
        self.generator = generator

    def train(self, mode: bool = True) -> SparseNMTModel:
        """Training mode, or evaluation mode."""
        for part in (self.encoder, self.decoder):
            if isinstance(part, (FastRNNEncoder, FastInputFeedRNNDecoder)):
                part.matmul_dtype = self.matmul_dtype if mode else None
        super().train(mode)
        return self

    def update_dropout(self, dropout: float, attention_dropout: float) -> None:
        """Change the dropout of every part that has some, as if the model had been built so.

        OpenNMT-py 2.3.0's method of the same name fails for average attention, which has none,
        and forgets the layers of a recurrent decoder and the positions of a recurrent encoder.
        """
        attentions = [m for m in self.modules() if isinstance(m, _WITH_ATTENTION_DROPOUT)]
        in_attention = {part for attention in attentions for part in attention.modules()}
        for part in self.modules():
            if isinstance(part, nn.Dropout):
                part.p = attention_dropout if part in in_attention else dropout
            elif isinstance(part, nn.RNNBase):
                part.dropout = dropout

    def hidden_states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Decoder outputs for a batch with targets, teacher-forced.

        Returns:
            The outputs ``(rows, hidden)`` that predict ``(rows,)`` target ids, in any order, but
            those of neighbouring columns of one length beside each other.
            Where the decoder cannot leave padding out, it has rows too, whose ids are `<blank>`.
        """
        assert batch.target is not None, "training and scoring need targets"
        assert batch.target_lengths is not None
        inputs, targets = batch.target[:-1], batch.target[1:].flatten()
        if not isinstance(self.decoder, FastInputFeedRNNDecoder):
            lengths = batch.source_lengths.to(batch.source.device)
            outputs, _ = self(batch.source, batch.target, lengths)
            return outputs.flatten(0, 1), targets
        lengths = batch.source_lengths
        if not isinstance(self.encoder, FastRNNEncoder):
            lengths = lengths.to(batch.source.device)
        state, memory_bank, lengths = self.encoder(batch.source, lengths)
        self.decoder.init_state(batch.source, memory_bank, state)
        outputs, index = self.decoder.packed_forward(
            inputs, batch.target_lengths - 1, memory_bank, lengths
        )
        return outputs, targets[index]


def _opennmt_options(config: ModelConfig) -> SimpleNamespace:
    """The namespace that OpenNMT-py's `from_opt` constructors read."""
    return SimpleNamespace(
        **asdict(config),
        brnn=config.encoder_type == "brnn",
        enc_rnn_size=config.rnn_size,
        dec_rnn_size=config.rnn_size,
        # The attention below replaces the one that OpenNMT-py builds from these.
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
    """Of source and target.

    The steps of a recurrent decoder get no positions: its state knows where it is, and OpenNMT-py
    2.3.0 trains it with all positions but searches with the first one alone.
    """
    sizes = (config.src_word_vec_size, config.tgt_word_vec_size)
    positions = (
        config.position_encoding,
        config.position_encoding and config.decoder_type == "transformer",
    )
    source, target = (
        Embeddings(size, len(words), words.pad, position_encoding=encoded, dropout=config.dropout)
        for size, words, encoded in zip(sizes, vocabularies, positions, strict=True)
    )
    return source, target


def _initialise(model: nn.Module, config: ModelConfig) -> None:
    """OpenNMT-py's initialisation: uniform, then Glorot for matrices, each where asked."""
    if config.param_init > 0:
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -config.param_init, config.param_init)
    if config.param_init_glorot:
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)


def _encoder_class(config: ModelConfig) -> Any:
    recurrent = config.encoder_type in ("rnn", "brnn")
    return FastRNNEncoder if recurrent else str2enc[config.encoder_type]


def _decoder_class(config: ModelConfig) -> Any:
    fed = config.decoder_type == "rnn" and config.input_feed
    return FastInputFeedRNNDecoder if fed else str2dec[config.decoder_type]


def build_model(config: ModelConfig, vocabularies: Vocabularies) -> SparseNMTModel:
    """A model with fresh weights drawn from torch's global generator.

    Args:
        config: the network.
        vocabularies: give the sizes and the padding ids.
    """
    options = _opennmt_options(config)
    source_embeddings, target_embeddings = _embeddings(config, vocabularies)
    with warnings.catch_warnings():
        # torch warns that one layer has no place for dropout between layers; a user knows.
        warnings.filterwarnings("ignore", "dropout option adds dropout")
        encoder = _encoder_class(config).from_opt(options, source_embeddings)
        decoder = _decoder_class(config).from_opt(options, target_embeddings)
    if isinstance(decoder, RNNDecoderBase) and decoder.attn is not None:
        decoder.attn = EntmaxGlobalAttention(
            config.rnn_size, config.global_attention, config.global_attention_alpha
        )
    generator = OutputLayer(config.rnn_size, len(vocabularies.target), config.generator_alpha)
    model = SparseNMTModel(encoder, decoder, generator)
    if config.share_embeddings:
        target_embeddings.word_lut.weight = source_embeddings.word_lut.weight
    if config.share_decoder_embeddings:
        # Begun as an output layer is: vectors as long as embeddings begin (param_init 0) would make
        # scores that are sure of themselves before anything is learned.
        with torch.no_grad():
            target_embeddings.word_lut.weight.copy_(generator.weight)
        generator.weight = target_embeddings.word_lut.weight
    _initialise(model, config)
    freeze(model, config)
    return model


def with_tokens_in_order(
    model: SparseNMTModel, config: ModelConfig, vocabularies: Vocabularies, wanted: Vocabularies
) -> SparseNMTModel:
    """The same network, in evaluation mode, with the ids that other vocabularies give its tokens.

    Args:
        model: the network, as `build_model` makes it from the next two.
        config: its configuration.
        vocabularies: its own.
        wanted: the same tokens in another order.
    """
    changed = build_model(config, wanted)
    changed.load_state_dict(model.state_dict())
    tables = [
        (changed.encoder.embeddings.word_lut.weight, vocabularies.source, wanted.source),
        (changed.decoder.embeddings.word_lut.weight, vocabularies.target, wanted.target),
        (changed.generator.weight, vocabularies.target, wanted.target),
        (changed.generator.bias, vocabularies.target, wanted.target),
    ]
    distinct = {id(table): (table, before, after) for table, before, after in tables}
    with torch.no_grad():
        for table, before, after in distinct.values():  # a shared table is put in order once
            assert set(before.tokens) == set(after.tokens)
            table.copy_(table[before.encode(after.tokens)])
    return changed.to(device_of(model)).eval()


def freeze(model: SparseNMTModel, config: ModelConfig) -> None:
    """Say of every weight whether it is trained, as OpenNMT-py does where asked to freeze parts."""
    for part, frozen in (
        (model.encoder, config.freeze_encoder),
        (model.decoder, config.freeze_decoder),
    ):
        part.requires_grad_(not frozen)
        part.embeddings.requires_grad_(True)  # these have options of their own
    model.encoder.embeddings.word_lut.requires_grad_(not config.freeze_word_vecs_enc)
    if not config.share_embeddings:  # else there is one table
        model.decoder.embeddings.word_lut.requires_grad_(not config.freeze_word_vecs_dec)


def count_parameters(model: nn.Module) -> int:
    """Number of distinct weights, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def device_of(model: nn.Module) -> torch.device:
    """The device that holds the model."""
    return next(model.parameters()).device
