"""Configurations of small networks, among them one of every architecture; vocabularies; a batch.

Tests that need one network change that of `small` or `small_transformer`. Tests of all
architectures take `CONFIGS`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary


def vocabularies_of(source: Iterable[str], target: Iterable[str]) -> Vocabularies:
    """Return vocabularies of these tokens, after the special ones."""
    return Vocabularies(
        Vocabulary((*SOURCE_SPECIALS, *source)), Vocabulary((*TARGET_SPECIALS, *target))
    )


def small(**changes: Any) -> ModelConfig:
    """Return the configuration of a network of size 8, which is recurrent by default."""
    sizes = dict.fromkeys(("rnn_size", "src_word_vec_size", "tgt_word_vec_size"), 8)
    return ModelConfig(**{**sizes, **changes})


def small_transformer(**changes: Any) -> ModelConfig:
    """Return the configuration of a Transformer of size 8 with two heads."""
    kinds = dict.fromkeys(("encoder_type", "decoder_type"), "transformer")
    return small(**{**kinds, "heads": 2, "transformer_ff": 8, **changes})


# Without dropout, so that a network computes the same each time.
BRNN = ModelConfig(
    encoder_type="brnn", rnn_size=8, src_word_vec_size=6, tgt_word_vec_size=6, dropout=0.0
)
TRANSFORMER = small_transformer(
    transformer_ff=16, position_encoding=True, dropout=0.0, attention_dropout=0.0
)
LEARNED = replace(
    TRANSFORMER,
    encoder_attention_alpha="learned",
    decoder_attention_alpha="learned",
    context_attention_alpha="learned",
)
SHARED_EMBEDDINGS = replace(
    BRNN,
    src_word_vec_size=8,
    tgt_word_vec_size=8,
    share_embeddings=True,
    share_decoder_embeddings=True,
)
VOCABULARIES = vocabularies_of("abcdef", "uvwxyz")
JOINT_VOCABULARIES = Vocabularies(VOCABULARIES.target, VOCABULARIES.target)
BATCH = make_batch(
    [Example([2, 3, 4], [5, 6], 0), Example([7, 3], [4], 1), Example([5], [9, 8, 7, 4], 2)],
    VOCABULARIES,
)
# Every architecture, by a name for the cases of tests.
CONFIGS = {
    "brnn": BRNN,
    "rnn": replace(BRNN, encoder_type="rnn"),
    "mean": replace(BRNN, encoder_type="mean", src_word_vec_size=8),
    "gru": replace(BRNN, rnn_type="GRU"),
    "bridge": replace(BRNN, bridge=True),
    "bridge of a GRU": replace(BRNN, bridge=True, rnn_type="GRU"),
    "gate": replace(BRNN, context_gate="both"),
    "no input feeding": replace(BRNN, input_feed=False),
    "no attention": replace(BRNN, global_attention="none"),
    "sparse": replace(BRNN, global_attention_alpha=1.5, generator_alpha=2.0),
    "positions": replace(BRNN, position_encoding=True),
    "transformer": TRANSFORMER,
    "sparse transformer": replace(
        TRANSFORMER,
        encoder_attention_alpha=1.5,
        decoder_attention_alpha=2.0,
        context_attention_alpha=1.3,
    ),
    "learned alphas": LEARNED,
    "learned alphas, relative positions": replace(LEARNED, max_relative_positions=2),
    "shared alphas": replace(
        TRANSFORMER,
        encoder_attention_alpha="learned_shared",
        context_attention_alpha="learned_shared",
    ),
    "average attention": replace(TRANSFORMER, self_attn_type="average"),
    "average attention, deep": replace(TRANSFORMER, self_attn_type="average", aan_useffn=True),
}
