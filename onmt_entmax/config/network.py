"""The network: encoder, decoder, attention and output layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from onmt_entmax.config.alphas import ALPHA, ATTENTION_KINDS, LEARNS_ALPHA, NUMBER_OR_LEARNED
from onmt_entmax.config.conditions import IsOn
from onmt_entmax.config.declaring import FEW, SIZE, Checked, ConfigError, option
from onmt_entmax.config.topics import MODEL, TRANSFORMER
from onmt_entmax.errors import nearest
from onmt_entmax.rules import FLAG, SHARE, number, one_of, shown, whole


@dataclass(frozen=True)
class ModelConfig(Checked):
    """Types, sizes and settings of the network's parts.

    The options without a help text here are converted from others: `options/train_table.py` and
    `options/train_alphas.py` describe those.
    """

    encoder_type: str = option(
        "rnn",
        one_of("rnn", "brnn", "mean", "transformer"),
        help="Type of the encoder.",
        topic=MODEL,
    )
    decoder_type: str = option(
        "rnn", one_of("rnn", "transformer"), help="Type of the decoder.", topic=MODEL
    )
    rnn_type: str = option("LSTM", one_of("LSTM", "GRU"), help="Cells of recurrent layers.")
    enc_layers: int = option(2, FEW, help="Layers of the encoder.")
    dec_layers: int = option(2, FEW, help="Layers of the decoder.")
    # Size of the states of encoder and decoder; in a Transformer, the model size.
    rnn_size: int = option(500, SIZE)
    src_word_vec_size: int = option(500, SIZE, help="Size of source embeddings.")
    tgt_word_vec_size: int = option(500, SIZE, help="Size of target embeddings.")
    input_feed: bool = option(
        True, FLAG, help="Feed each attentional vector to a recurrent decoder's next step."
    )
    bridge: bool = option(
        False, FLAG, help="Add a layer between the states of encoder and decoder."
    )
    context_gate: str | None = option(
        None,
        one_of("source", "target", "both", off=None),
        help="Gate of a recurrent decoder's context.",
    )
    global_attention: str = option(
        "general",
        one_of("dot", "general", "mlp", "none"),
        help="Scores of a recurrent decoder.",
    )
    global_attention_alpha: float = option(1.0, ALPHA)
    # A number, `learned` (one alpha for each head) or `learned_shared` (one for all heads).
    encoder_attention_alpha: float | str = option(1.0, NUMBER_OR_LEARNED)
    decoder_attention_alpha: float | str = option(1.0, NUMBER_OR_LEARNED)
    context_attention_alpha: float | str = option(1.0, NUMBER_OR_LEARNED)
    alpha_init_mean: float = option(
        0.0,
        number(-100, 100),
        help="Mean of `a` at the start; a learned alpha is 1 + sigmoid(a).",
        topic=TRANSFORMER,
        needs=LEARNS_ALPHA,
    )
    alpha_init_std: float = option(
        1.0,
        number(0, 100),
        help="Standard deviation of `a` at the start.",
        topic=TRANSFORMER,
        needs=LEARNS_ALPHA,
    )
    generator_alpha: float = option(1.0, ALPHA)
    heads: int = option(8, FEW, help="Attention heads of a Transformer.", topic=MODEL)
    transformer_ff: int = option(
        2048, SIZE, help="Feed-forward size of a Transformer.", topic=MODEL
    )
    dropout: float = option(0.3, SHARE, help="Dropout probability.", topic=MODEL)
    attention_dropout: float = option(
        0.1, SHARE, help="Dropout probability of a Transformer's attention."
    )
    position_encoding: bool = option(False, FLAG, help="Add sinusoidal positions to embeddings.")
    share_embeddings: bool = option(
        False, FLAG, help="Share one table of embeddings.", needs=IsOn("share_vocab")
    )
    share_decoder_embeddings: bool = option(
        False, FLAG, help="Share one table between target embeddings and output layer."
    )
    self_attn_type: str = option(
        "scaled-dot", one_of("scaled-dot", "average"), help="Self-attention of the decoder."
    )
    max_relative_positions: int = option(
        0, whole(0, 10_000), help="Largest relative position in a Transformer; 0: absolute ones."
    )
    aan_useffn: bool = option(False, FLAG, help="Add a feed-forward layer to average attention.")
    pos_ffn_activation_fn: str = option(
        "relu", one_of("relu", "gelu"), help="Activation in a Transformer's feed-forward layers."
    )
    param_init: float = option(
        0.1, number(0, 100), help="Initialise uniformly in (-p, p); 0: PyTorch's defaults."
    )
    param_init_glorot: bool = option(False, FLAG, help="Initialise matrices by Glorot's method.")
    freeze_encoder: bool = option(False, FLAG, help="Freeze the encoder, but for its embeddings.")
    freeze_decoder: bool = option(False, FLAG, help="Freeze the decoder, but for its embeddings.")
    freeze_word_vecs_enc: bool = option(False, FLAG, help="Freeze source embeddings.")
    freeze_word_vecs_dec: bool = option(False, FLAG, help="Freeze target embeddings.")

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        yield from self._misfits_of_any_type()
        if self.decoder_type == "transformer":
            yield from self._transformer_misfits()
        else:
            yield from self._recurrent_misfits()
        yield from self._sharing_misfits()

    def _misfits_of_any_type(self) -> Iterator[tuple[str, str]]:
        """Check encoder and decoder, whatever their types."""
        source_size, target_size = self.src_word_vec_size, self.tgt_word_vec_size
        if (self.encoder_type == "transformer") is not (self.decoder_type == "transformer"):
            yield "encoder_type", "a Transformer needs it on both sides"
        if self.encoder_type == "brnn" and self.rnn_size % 2:
            yield "rnn_size", f"must be even for the two directions of brnn, not {self.rnn_size}"
        if self.encoder_type == "mean" and source_size != self.rnn_size:
            yield (
                "src_word_vec_size",
                f"must equal rnn_size {self.rnn_size} with encoder_type: mean",
            )
        if self.position_encoding and (source_size % 2 or target_size % 2):
            yield (
                "position_encoding",
                f"needs even sizes of embeddings, not {source_size} and {target_size}",
            )
        if self.self_attn_type == "average" and self.decoder_attention_alpha != 1:
            yield (
                "decoder_attention_alpha",
                "needs self_attn_type: scaled-dot; average attention has no alpha",
            )

    def _recurrent_misfits(self) -> Iterator[tuple[str, str]]:
        """Check what a recurrent decoder needs."""
        same_layers = self.enc_layers == self.dec_layers
        # With input feeding, the decoder takes the first of the encoder's last states.
        if not same_layers and not (self.input_feed and self.enc_layers > self.dec_layers):
            yield (
                "dec_layers",
                f"{self.dec_layers} of a recurrent decoder do not fit enc_layers: "
                f"{self.enc_layers}, whose last states they begin with; make them equal",
            )
        for kind, alpha in self.attention_alphas.items():
            if alpha != 1:
                yield (
                    f"{kind}_attention_alpha",
                    "is of a Transformer; a recurrent decoder has global_attention_function",
                )

    def _transformer_misfits(self) -> Iterator[tuple[str, str]]:
        """Check what a Transformer needs."""
        size = self.rnn_size  # of the model
        if size % self.heads:
            yield "heads", f"must divide rnn_size {size}"
        for name in ("src_word_vec_size", "tgt_word_vec_size"):
            if getattr(self, name) != size:
                yield name, f"must equal rnn_size {size} in a Transformer"

    def _sharing_misfits(self) -> Iterator[tuple[str, str]]:
        """Check tables of embeddings that two parts share."""
        target_size, freezes_target = self.tgt_word_vec_size, self.freeze_word_vecs_dec
        if self.share_embeddings and self.src_word_vec_size != target_size:
            yield "share_embeddings", "needs equal word_vec_size on both sides"
        if self.share_embeddings and self.freeze_word_vecs_enc != freezes_target:
            yield "share_embeddings", "is one table: freeze it for both sides or neither"
        if self.share_decoder_embeddings and freezes_target:
            yield "freeze_word_vecs_dec", "would freeze the output layer that shares it"
        if self.share_decoder_embeddings and target_size != self.rnn_size:
            yield "share_decoder_embeddings", "needs tgt_word_vec_size equal to rnn_size"

    @classmethod
    def read(cls, values: Mapping[Any, Any]) -> ModelConfig:
        """Return the network that a file describes; keys that it lacks have their defaults.

        Raises:
            ConfigError: a key is unknown, or see the class.
        """
        names = {field.name for field in fields(cls)}
        for key in values:
            if key not in names:
                name = f"{key:.80}" if isinstance(key, str) else shown(key)
                raise ConfigError(name, f"no such key{nearest(name, names)}")
        return cls(**values)

    @property
    def attention_alphas(self) -> dict[str, float | str]:
        """Alphas of a Transformer's attention by kind."""
        return {kind: getattr(self, f"{kind}_attention_alpha") for kind in ATTENTION_KINDS}

    @property
    def source_attention_alpha(self) -> float | str:
        """Alpha of the decoder's attention to the source."""
        if self.decoder_type == "transformer":
            return self.context_attention_alpha
        return self.global_attention_alpha

    @property
    def attention_text(self) -> str:
        """The alphas of all attentions, as text for the log."""
        if self.decoder_type != "transformer":
            return f"attention alpha {self.global_attention_alpha:g}"
        texts = [
            f"{kind} {alpha}" if isinstance(alpha, str) else f"{kind} {alpha:g}"
            for kind, alpha in self.attention_alphas.items()
        ]
        return f"attention alphas {', '.join(texts)}"
