"""How many weights and how much memory a network needs; `model.py` builds it."""

from __future__ import annotations

import torch

from onmt_entmax.config import ConfigError as NetworkError
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.memory import check_free, named_exhaustion

__all__ = [
    "ModelConfig",
    "NetworkError",
    "refuse_too_large",
    "search_bytes",
    "training_bytes",
]


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
