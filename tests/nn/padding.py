"""Batches with padding and without, for the tests of padded updates."""

import random

from torch import Tensor

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.padded import pad_batch

SIZES = (23, 19)  # tokens of source and target
SHAPES = Shapes(batch_size=7)
CONFIG = ModelConfig(
    encoder_type="brnn",
    rnn_size=12,
    src_word_vec_size=10,
    tgt_word_vec_size=8,
    global_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=0.4,
)


def vocabularies() -> Vocabularies:
    sides = []
    for count in SIZES:
        specials = [str(token) for token in TARGET_SPECIALS]
        sides.append(Vocabulary((*specials, *(f"t{n}" for n in range(count - len(specials))))))
    return Vocabularies(*sides)


KNOWN = vocabularies()


def batch_of(sentences: int, seed: int = 0) -> Batch:
    generator = random.Random(seed)

    def tokens(count: int, least: int) -> list[int]:
        return [generator.randrange(4, count) for _ in range(generator.randint(least, 7))]

    examples = [Example(tokens(SIZES[0], 1), tokens(SIZES[1], 0), n) for n in range(sentences)]
    return make_batch(examples, KNOWN)


def padded(batch: Batch) -> tuple[Tensor, Shape]:
    return pad_batch(batch, SHAPES, KNOWN.source.pad, KNOWN.target.pad)


def packed_loss(model: SparseNMTModel, batch: Batch, smoothing: float = 0.0) -> Tensor:
    hidden, target = model.hidden_states(batch)
    return model.generator.loss(hidden, target, KNOWN.target.pad, smoothing).loss


def gradients(loss: Tensor, model: SparseNMTModel) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
