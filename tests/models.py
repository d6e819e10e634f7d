"""Small networks and vocabularies."""

from collections.abc import Iterable
from typing import Any

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary


def words(source: Iterable[str], target: Iterable[str]) -> Vocabularies:
    """Vocabularies of these tokens, after the special ones."""
    return Vocabularies(
        Vocabulary((*SOURCE_SPECIALS, *source)), Vocabulary((*TARGET_SPECIALS, *target))
    )


def small(**changes: Any) -> ModelConfig:
    """A network of size 8, recurrent unless the changes say otherwise."""
    sizes = dict.fromkeys(("rnn_size", "src_word_vec_size", "tgt_word_vec_size"), 8)
    return ModelConfig(**{**sizes, **changes})


def small_transformer(**changes: Any) -> ModelConfig:
    """A Transformer of size 8 with two heads."""
    kinds = dict.fromkeys(("encoder_type", "decoder_type"), "transformer")
    return small(**{**kinds, "heads": 2, "transformer_ff": 8, **changes})
