"""Estimate the memory of networks, batches and searches, and refuse networks that cannot fit.

Only what can exceed the memory is counted: the weights of a large network, and tensors that grow
with the square of a sentence's length. The factors are rough: which tensors exist at the same time,
and in how many copies, depends on the code that computes them.
"""

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.free_memory import check_free

_FLOAT32 = 4  # bytes
# Matrices (hidden, hidden) in a layer of an LSTM: four gates, each with one for inputs and one for
# states. A layer of a Transformer's decoder has as many, four in each of its two attentions.
_MATRICES_PER_LAYER = 8
# Copies of the attention weights of a Transformer in training: at least the weights, kept for the
# backward pass, and their gradients.
_TRANSFORMER_COPIES = 2
# The same for a recurrent decoder: scores and weights, and the gradients of both.
_RECURRENT_COPIES = 4
# A training needs about four times the memory of an evaluation: it keeps attention weights, and
# computes gradients of them and of scores.
_TRAINING_TO_EVALUATION = 4
# Copies of the states (positions, hidden) of a sentence in a recurrent search: about eight while
# the longest sentence is encoded, and two that each sentence keeps, its memory bank and its keys.
_ENCODING_COPIES = 8
_KEPT_COPIES = 2


def refuse_too_large(
    config: ModelConfig,
    vocabularies: Vocabularies,
    copies: int = 1,
    device: torch.device | None = None,
) -> None:
    """Refuse a network that does not fit in the memory that is free, before it is built.

    Args:
        config: the network.
        vocabularies: the vocabularies, whose sizes count.
        copies: how many numbers each weight needs: itself, and in training its gradient and the
            optimiser's state.
        device: the device; None: the CPU.

    Raises:
        TooLargeError: if it does not fit; the message names the options that decide the size.
    """
    size = config.rnn_size
    layer = _MATRICES_PER_LAYER * size * size
    if config.decoder_type == "transformer":
        layer += 2 * size * config.transformer_ff
    weights = (config.enc_layers + config.dec_layers) * layer
    weights += len(vocabularies.source) * config.src_word_vec_size
    weights += len(vocabularies.target) * (config.tgt_word_vec_size + size)
    advice = "make rnn_size, word_vec_size, layers or the vocabularies smaller"
    with named_exhaustion(lambda: f"the network of about {weights:,} weights", advice):
        check_free(_FLOAT32 * copies * weights, device or torch.device("cpu"))


def training_bytes(config: ModelConfig, sentences: int, source: int, target: int) -> int:
    """Return about how many bytes the attention of a batch needs in training.

    For sentences so long that memory may not suffice, everything else is small in comparison.

    Args:
        config: the network.
        sentences: the number of sentences in the batch.
        source: largest source length.
        target: largest target length.
    """
    if config.decoder_type == "transformer":
        decoder = config.dec_layers * (target * target + source * target)
        weights = config.heads * (config.enc_layers * source * source + decoder)
        numbers = _TRANSFORMER_COPIES * weights
    elif config.global_attention == "none":
        numbers = 0
    else:
        numbers = _RECURRENT_COPIES * source * target
    return _FLOAT32 * sentences * numbers


def evaluation_bytes(config: ModelConfig, sentences: int, source: int, target: int) -> int:
    """Return about how many bytes the attention of a batch needs without training.

    Args:
        config: the network.
        sentences: the number of sentences in the batch.
        source: largest source length.
        target: largest target length.
    """
    return training_bytes(config, sentences, source, target) // _TRAINING_TO_EVALUATION


def search_bytes(config: ModelConfig, sentences: int, source: int) -> int:
    """Return about how many bytes a batch needs in a search.

    Args:
        config: the network.
        sentences: the number of sentences in the batch.
        source: largest source length.
    """
    if config.encoder_type == "transformer":
        scores_and_weights = 2 * config.heads * source * source  # of one layer at a time
        return _FLOAT32 * sentences * scores_and_weights
    copies = _ENCODING_COPIES + _KEPT_COPIES * sentences
    return _FLOAT32 * source * config.rnn_size * copies
