"""The description of a network, and how much memory it needs; `model.py` builds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

import torch

from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.memory import check_free, named_exhaustion
from onmt_entmax.nn.transformer import KINDS, LEARNED, SHARED
from onmt_entmax.rules import FLAG, SHARE, Rule, number, one_of, shown, whole

_LAYERS = whole(1, 1000)
_SIZE = whole(1, 1_000_000)
_ALPHA = number(1, 1e6, " (1 is softmax, 2 is sparsemax)")
_ATTENTION_ALPHA = replace(_ALPHA, names=(LEARNED, SHARED))

# What each field of `ModelConfig` may be; the options of the same names share these rules.
RULES: Mapping[str, Rule] = {
    "encoder_type": one_of("rnn", "brnn", "mean", "transformer"),
    "decoder_type": one_of("rnn", "transformer"),
    "rnn_type": one_of("LSTM", "GRU"),
    "enc_layers": _LAYERS,
    "dec_layers": _LAYERS,
    "rnn_size": _SIZE,
    "src_word_vec_size": _SIZE,
    "tgt_word_vec_size": _SIZE,
    "input_feed": FLAG,
    "bridge": FLAG,
    "context_gate": Rule(str, names=("source", "target", "both"), off=None),
    "global_attention": one_of("dot", "general", "mlp", "none"),
    "global_attention_alpha": _ALPHA,
    "encoder_attention_alpha": _ATTENTION_ALPHA,
    "decoder_attention_alpha": _ATTENTION_ALPHA,
    "context_attention_alpha": _ATTENTION_ALPHA,
    "alpha_init_mean": number(-100, 100),
    "alpha_init_std": number(0, 100),
    "generator_alpha": _ALPHA,
    "dropout": SHARE,
    "attention_dropout": SHARE,
    "position_encoding": FLAG,
    "share_embeddings": FLAG,
    "share_decoder_embeddings": FLAG,
    "heads": whole(1, 1000),
    "transformer_ff": _SIZE,
    "self_attn_type": one_of("scaled-dot", "average"),
    "max_relative_positions": whole(0, 10_000),
    "aan_useffn": FLAG,
    "pos_ffn_activation_fn": one_of("relu", "gelu"),
    "param_init": number(0, 100),
    "param_init_glorot": FLAG,
    "freeze_encoder": FLAG,
    "freeze_decoder": FLAG,
    "freeze_word_vecs_enc": FLAG,
    "freeze_word_vecs_dec": FLAG,
}


class NetworkError(UserError):
    """A network that cannot be; the message names the key.

    Attributes:
        key: the field of `ModelConfig`.
        reason: the message without the key.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key, self.reason = key, reason


@dataclass(frozen=True)
class ModelConfig:
    """The network. Names and values are those of OpenNMT-py's options, but for the alphas.

    Raises:
        NetworkError: names the first value that breaks its rule or does not fit another.
    """

    encoder_type: str = "rnn"  # or brnn, mean, transformer
    decoder_type: str = "rnn"  # or transformer
    rnn_type: str = "LSTM"  # or GRU
    enc_layers: int = 2
    dec_layers: int = 2
    rnn_size: int = 500  # of encoder and decoder states; of a Transformer, the model size
    src_word_vec_size: int = 500
    tgt_word_vec_size: int = 500
    input_feed: bool = True  # feed each attentional vector to a recurrent decoder's next step
    bridge: bool = False  # a layer between the encoder's last states and the decoder's first
    context_gate: str | None = None  # or source, target, both
    global_attention: str = "general"  # scores of a recurrent decoder; or dot, mlp, none
    global_attention_alpha: float = 1.0  # 1 is softmax
    # Of a Transformer's self-attention, and of its decoder's attention to the source: a number,
    # `learned` (one alpha for each head) or `learned_shared` (one for all heads of all layers).
    encoder_attention_alpha: float | str = 1.0
    decoder_attention_alpha: float | str = 1.0
    context_attention_alpha: float | str = 1.0
    alpha_init_mean: float = 0.0  # of `a` in the initial learned alphas, 1 + sigmoid(a)
    alpha_init_std: float = 1.0
    generator_alpha: float = 1.0  # of the output layer
    dropout: float = 0.3  # between layers and on embeddings
    attention_dropout: float = 0.1  # of a Transformer
    position_encoding: bool = False  # add sinusoidal positions to the embeddings
    share_embeddings: bool = False  # one table for both sides; needs one vocabulary
    share_decoder_embeddings: bool = False  # one table for target embeddings and output layer
    heads: int = 8
    transformer_ff: int = 2048  # size of the feed-forward layers
    self_attn_type: str = "scaled-dot"  # of a Transformer's decoder; or average
    max_relative_positions: int = 0  # farthest relative position of a Transformer; 0: none
    aan_useffn: bool = False  # a feed-forward layer in average attention
    pos_ffn_activation_fn: str = "relu"  # of a Transformer's feed-forward layers; or gelu
    param_init: float = 0.1  # initialise uniformly in (-p, p); 0 keeps PyTorch's defaults
    param_init_glorot: bool = False  # initialise matrices by Glorot's method instead
    freeze_encoder: bool = False  # but for its embeddings
    freeze_decoder: bool = False  # likewise
    freeze_word_vecs_enc: bool = False
    freeze_word_vecs_dec: bool = False  # unless they are shared

    def __post_init__(self) -> None:
        for name, rule in RULES.items():
            value = getattr(self, name)
            if not rule.fits(value):
                raise NetworkError(name, f"{rule}, not {shown(value)}")
        for name, reason in self._misfits():
            raise NetworkError(name, reason)

    def _misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the fields whose values do not fit those of others, and why."""
        size, transformer = self.rnn_size, self.decoder_type == "transformer"
        if (self.encoder_type == "transformer") is not transformer:
            yield "encoder_type", "a Transformer needs it on both sides"
        if self.encoder_type == "brnn" and size % 2:
            yield "rnn_size", f"must be even for the two directions of brnn, not {size}"
        fits = self.enc_layers == self.dec_layers
        fits |= self.input_feed and self.enc_layers > self.dec_layers
        if not transformer and not fits:
            yield (
                "dec_layers",
                f"{self.dec_layers} of a recurrent decoder do not fit enc_layers: "
                f"{self.enc_layers}, whose last states they begin with; make them equal",
            )
        if self.encoder_type == "mean" and self.src_word_vec_size != size:
            yield "src_word_vec_size", f"must equal rnn_size {size} with encoder_type: mean"
        sides = {"src": self.src_word_vec_size, "tgt": self.tgt_word_vec_size}
        for words in sides.values():
            if self.position_encoding and words % 2:
                yield "position_encoding", f"needs an even word_vec_size, not {words}"
        if transformer:
            if size % self.heads:
                yield "heads", f"must divide rnn_size {size}"
            for side, words in sides.items():
                if words != size:
                    yield f"{side}_word_vec_size", f"must equal rnn_size {size} in a Transformer"
        for kind, alpha in self.attention_alphas.items():
            if alpha != 1 and not transformer:
                yield (
                    f"{kind}_attention_alpha",
                    "is of a Transformer; a recurrent decoder has global_attention_function",
                )
        if self.self_attn_type == "average" and self.decoder_attention_alpha != 1:
            yield (
                "decoder_attention_alpha",
                "needs self_attn_type: scaled-dot; average attention has no alpha",
            )
        if self.bridge and self.enc_layers > 1:
            yield (
                "bridge",
                "OpenNMT-py 2.3.0's bridge mixes the sentences of a batch unless enc_layers: 1",
            )
        if self.share_embeddings:
            if self.src_word_vec_size != self.tgt_word_vec_size:
                yield "share_embeddings", "needs equal word_vec_size on both sides"
            if self.freeze_word_vecs_enc != self.freeze_word_vecs_dec:
                yield "share_embeddings", "is one table: freeze it for both sides or neither"
        if self.share_decoder_embeddings:
            if self.freeze_word_vecs_dec:
                yield "freeze_word_vecs_dec", "would freeze the output layer that shares it"
            if self.tgt_word_vec_size != size:
                yield "share_decoder_embeddings", "needs tgt_word_vec_size equal to rnn_size"

    @classmethod
    def read(cls, values: object) -> ModelConfig:
        """Return the network that a file describes; keys that it lacks have their defaults.

        Raises:
            NetworkError: a key is unknown, or see the class.
        """
        if not isinstance(values, Mapping):
            raise NetworkError("model", f"must be a mapping, not {shown(values)}")
        known = {field.name for field in fields(cls)}
        for key in values:
            if key not in known:
                name = key[:80] if isinstance(key, str) else shown(key)
                raise NetworkError(name, f"no such key{nearest(name, known)}")
        return cls(**values)

    @property
    def attention_alphas(self) -> dict[str, float | str]:
        """Alphas of a Transformer's attention by kind."""
        return {kind: getattr(self, f"{kind}_attention_alpha") for kind in KINDS}

    @property
    def source_attention_alpha(self) -> float | str:
        """Alpha of the decoder's attention to the source."""
        if self.decoder_type == "transformer":
            return self.context_attention_alpha
        return self.global_attention_alpha

    @property
    def attention_text(self) -> str:
        """The alphas of all attention, for people."""
        if self.decoder_type != "transformer":
            return f"attention alpha {self.global_attention_alpha:g}"
        alphas = self.attention_alphas.items()
        texts = [f"{kind} {a if isinstance(a, str) else f'{a:g}'}" for kind, a in alphas]
        return f"attention alphas {', '.join(texts)}"

    @property
    def dense_attention(self) -> bool:
        """Whether every source position has a nonzero weight at every step."""
        return self.source_attention_alpha == 1


def refuse_too_large(
    config: ModelConfig,
    vocabularies: Vocabularies,
    copies: int = 1,
    device: torch.device | None = None,
) -> None:
    """Refuse a network that does not fit in the memory that is free, before it is built.

    Args:
        config: the network.
        vocabularies: give their sizes.
        copies: numbers for each weight, such as its gradient and the optimiser's.
        device: the CPU if None.

    Raises:
        TooLargeError: names the options that decide the size.
    """
    size, (sources, targets) = config.rnn_size, map(len, vocabularies)
    layer = 8 * size * size  # of an LSTM or, about, of a Transformer without its feed-forward part
    layer += 2 * size * config.transformer_ff * (config.decoder_type == "transformer")
    total = (config.enc_layers + config.dec_layers) * layer
    total += sources * config.src_word_vec_size + targets * (config.tgt_word_vec_size + size)
    advice = "make rnn_size, word_vec_size, layers or the vocabularies smaller"
    with named_exhaustion(lambda: f"the network of about {total:,} weights", advice):
        check_free(4 * copies * total, device or torch.device("cpu"))


def training_bytes(config: ModelConfig, sentences: int, source: int, target: int) -> int:
    """Return about how many bytes the attention of a batch needs in training.

    Everything else is small for sentences so long that memory may not suffice. `source` and
    `target` are the largest lengths.
    """
    if config.decoder_type == "transformer":
        decoder = config.dec_layers * (target * target + source * target)
        scores = 2 * config.heads * (config.enc_layers * source * source + decoder)
    else:
        scores = 4 * source * target * (config.global_attention != "none")
    return 4 * sentences * scores


def search_bytes(config: ModelConfig, sentences: int, source: int) -> int:
    """Return about how many bytes a batch needs in a search, with sources of at most `source`."""
    if config.encoder_type == "transformer":
        return 8 * sentences * config.heads * source * source
    return 4 * source * config.rnn_size * (8 + 2 * sentences)
