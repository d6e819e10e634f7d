"""Models, batches and their losses with padding and without, for tests of padded updates."""

import random
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tests.models import small_transformer

SIZES = (23, 19)  # tokens of source and target vocabulary
SHAPES = Shapes(batch_size=7)
RECURRENT = ModelConfig(
    encoder_type="brnn",
    rnn_size=12,
    src_word_vec_size=10,
    tgt_word_vec_size=8,
    global_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=0.4,
)
TRANSFORMER = small_transformer(
    transformer_ff=10,
    position_encoding=True,
    encoder_attention_alpha="learned",
    decoder_attention_alpha=1.5,
    context_attention_alpha="learned_shared",
    generator_alpha=1.5,
    param_init=0.4,
    dropout=0.0,
    attention_dropout=0.0,
)

SPECIALS = [str(token) for token in TARGET_SPECIALS]


def vocabulary_of(size: int) -> Vocabulary:
    """Return the special tokens, and others up to a size."""
    return Vocabulary((*SPECIALS, *(f"t{number}" for number in range(size - len(SPECIALS)))))


VOCABULARIES = Vocabularies(*map(vocabulary_of, SIZES))


def model_of(config: ModelConfig, **options: Any) -> SparseNMTModel:
    """Return a model in float64, in training mode, whose weights depend on its options alone."""
    torch.manual_seed(1)
    return build_model(replace(config, **options), VOCABULARIES).double().train()


def batch_of(sentences: int, seed: int = 0) -> Batch:
    """Return random sentences of up to seven tokens; targets may be empty."""
    generator = random.Random(seed)

    def tokens(vocabulary: int, least: int) -> list[int]:
        length = generator.randint(least, 7)
        return [generator.randrange(len(SPECIALS), vocabulary) for _ in range(length)]

    examples = [Example(tokens(SIZES[0], 1), tokens(SIZES[1], 0), n) for n in range(sentences)]
    return make_batch(examples, VOCABULARIES)


def padded(batch: Batch) -> tuple[Tensor, Shape]:
    """Return a batch with padding up to one of the `SHAPES`."""
    return pad_batch(batch, SHAPES, VOCABULARIES.source.pad, VOCABULARIES.target.pad)


def packed_loss(model: SparseNMTModel, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Return the loss of a batch without padding."""
    hidden, target = model.hidden_states(batch)
    return model.generator.loss(hidden, target, VOCABULARIES.target.pad, smoothing).loss


def padded_loss(
    model: SparseNMTModel, batch: tuple[Tensor, Shape], smoothing: float = 0.0
) -> Tensor:
    """Return the loss of a batch that `padded` returned."""
    source, target, lengths = views(*batch)
    outputs = padded_outputs(model, source, target, lengths).flatten(0, 1)
    targets, pad = target[1:].flatten(), VOCABULARIES.target.pad
    return model.generator.loss(outputs, targets, pad, smoothing).loss


def gradients(loss: Tensor, model: SparseNMTModel) -> dict[str, Tensor]:
    """Return the gradients of all weights that have one, by name."""
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
