"""How many weights and how much memory a network needs; `model.py` builds it."""

from __future__ import annotations

import torch

from onmt_entmax.config import LEARNED, SHARED, ModelConfig
from onmt_entmax.config import ConfigError as NetworkError
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.memory import check_free, named_exhaustion

__all__ = [
    "ModelConfig",
    "NetworkError",
    "refuse_too_large",
    "search_bytes",
    "training_bytes",
    "weights_of",
]


def weights_of(config: ModelConfig, source_words: int, target_words: int) -> dict[str, int]:
    """Return the number of weights of the network's parts, without building it.

    They are by the names of the options that decide the size of each part; empty parts too.
    """
    size, feed, heads = config.rnn_size, config.transformer_ff, config.heads
    source, target = config.src_word_vec_size, config.tgt_word_vec_size
    attention = 4 * (size * size + size)
    relative = (2 * config.max_relative_positions + 1) * (size // heads)
    relative *= config.max_relative_positions > 0
    forward = 2 * size * feed + feed + 3 * size
    if config.decoder_type == "transformer":
        encoder = config.enc_layers * (attention + relative + forward + 2 * size) + 2 * size
        own = attention + relative
        if config.self_attn_type == "average":
            own = 4 * size * size + 2 * size
            own += (2 * size * size + 4 * size) if config.aan_useffn else 0
        decoder = config.dec_layers * (own + attention + forward + 4 * size) + 2 * size
        alphas = config.attention_alphas
        encoder += _learned(alphas["encoder"], config.enc_layers * heads)
        decoder += _learned(alphas["decoder"], config.dec_layers * heads)
        decoder += _learned(alphas["context"], config.dec_layers * heads)
    else:
        encoder = _recurrent_encoder_weights(config)
        fed = target + size if config.input_feed else target
        decoder = _recurrent_weights(config, config.dec_layers, fed, size, 1)
        if config.context_gate is not None:
            decoder += 2 * (fed + size) * size + 2 * size * size + 3 * size
        if config.global_attention != "none":
            scores = {"general": size * size, "mlp": 2 * size * size + 3 * size}
            decoder += 2 * size * size + scores.get(config.global_attention, 0)
    return {
        "src_vocab_size times src_word_vec_size": source_words * source,
        "tgt_vocab_size times tgt_word_vec_size": (
            0 if config.share_embeddings else target_words * target
        ),
        "enc_layers and rnn_size": encoder,
        "dec_layers and rnn_size": decoder,
        "tgt_vocab_size times rnn_size": (
            target_words + (0 if config.share_decoder_embeddings else target_words * size)
        ),
    }


def _learned(alpha: float | str, heads: int) -> int:
    """Return the number of learned alphas of a kind with so many heads in all layers."""
    return {LEARNED: heads, SHARED: 1}.get(str(alpha), 0)


def _recurrent_weights(
    config: ModelConfig, layers: int, inputs: int, size: int, directions: int
) -> int:
    """Return the weights of stacked LSTM or GRU layers, each direction of `size` units."""
    gates = 4 if config.rnn_type == "LSTM" else 3
    widths = inputs + (layers - 1) * size * directions  # summed over the layers
    return directions * gates * size * (widths + layers * (size + 2))


def _recurrent_encoder_weights(config: ModelConfig) -> int:
    if config.encoder_type == "mean":
        return 0
    directions = 2 if config.encoder_type == "brnn" else 1
    size = config.rnn_size // directions
    weights = _recurrent_weights(
        config, config.enc_layers, config.src_word_vec_size, size, directions
    )
    states = 2 if config.rnn_type == "LSTM" else 1
    return weights + config.bridge * states * (size * size + size)


def refuse_too_large(
    config: ModelConfig,
    vocabularies: Vocabularies,
    copies: int = 1,
    device: torch.device | None = None,
) -> None:
    """Refuse a network that does not fit in the memory that is free.

    Args:
        config: the network.
        vocabularies: give their sizes.
        copies: numbers for each weight, such as its gradient and the optimiser's.
        device: the CPU if None.

    Raises:
        TooLargeError: names the largest part.
    """
    weights = weights_of(config, *map(len, vocabularies))
    total = sum(weights.values())
    part = max(weights, key=weights.__getitem__)
    largest = f"make its largest part smaller: {part}, {weights[part]:,} weights"
    with named_exhaustion(lambda: f"the network of {total:,} weights", largest):
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
