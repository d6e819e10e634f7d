"""A small recurrent model and a small Transformer, in float64, and random batches for them."""

import random
from dataclasses import replace
from typing import Any

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from tests.models import small_transformer

LONGEST = 7  # tokens of a sentence
WEIGHT_RANGE = 0.4  # so large that some attention weights and probabilities are zero
# All sizes differ, so that no two axes can be confused.
RECURRENT = ModelConfig(
    encoder_type="brnn",
    rnn_size=12,
    src_word_vec_size=10,
    tgt_word_vec_size=8,
    global_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=WEIGHT_RANGE,
)
TRANSFORMER = small_transformer(
    transformer_ff=10,
    position_encoding=True,
    encoder_attention_alpha="learned",
    decoder_attention_alpha=1.5,
    context_attention_alpha="learned_shared",
    generator_alpha=1.5,
    param_init=WEIGHT_RANGE,
    dropout=0.0,
    attention_dropout=0.0,
)


def _vocabulary_of(size: int) -> Vocabulary:
    """Return the special tokens of a target, and others up to a size."""
    specials = [str(token) for token in TARGET_SPECIALS]
    return Vocabulary((*specials, *(f"t{number}" for number in range(size - len(specials)))))


VOCABULARIES = Vocabularies(source=_vocabulary_of(23), target=_vocabulary_of(19))


def model_of(config: ModelConfig, **changes: Any) -> SparseNMTModel:
    """Return a model in float64, in training mode, whose weights depend on its options alone.

    Args:
        config: options of the model.
        changes: other values of some of them.
    """
    torch.manual_seed(1)
    return build_model(replace(config, **changes), VOCABULARIES).double().train()


def batch_of(sentences: int) -> Batch:
    """Return random pairs, always the same, of up to `LONGEST` tokens a side.

    Some targets are empty.
    """
    generator = random.Random(0)

    def tokens(vocabulary: Vocabulary, least: int) -> list[int]:
        length = generator.randint(least, LONGEST)
        return [generator.randrange(len(TARGET_SPECIALS), len(vocabulary)) for _ in range(length)]

    source, target = VOCABULARIES
    examples = [Example(tokens(source, 1), tokens(target, 0), n) for n in range(sentences)]
    return make_batch(examples, VOCABULARIES)
