"""Small models in float64, batches, and updates of these, for tests of `Update`."""

import random
from dataclasses import replace

import torch
from torch import Tensor

from onmt_entmax.config import ModelConfig, OptimizerConfig, TrainingConfig
from onmt_entmax.data.batch import Batch, Example, Shapes, make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.train.optimiser import build_optimizer
from onmt_entmax.train.update import Update
from tests.models import small, small_transformer

SENTENCES = 5  # of a batch, which fill a padded one
WORDS = Vocabulary((*map(str, TARGET_SPECIALS), *(f"t{n}" for n in range(16))))
VOCABULARIES = Vocabularies(WORDS, WORDS)
RATE = 0.01  # of learning
WEIGHT_RANGE = 0.4  # so large that some tokens have no probability
RECURRENT = small(
    encoder_type="brnn",
    global_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=WEIGHT_RANGE,
)
TRANSFORMER = small_transformer(
    attention_dropout=0.0,
    encoder_attention_alpha="learned",
    context_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=WEIGHT_RANGE,
)


def model_of(config: ModelConfig = RECURRENT, dropout: float = 0.0) -> SparseNMTModel:
    """Return the model of a configuration, with the same weights each time."""
    torch.manual_seed(1)
    return build_model(replace(config, dropout=dropout), VOCABULARIES).double().train()


def batch_of(seed: int, longest: int = 7) -> Batch:
    """Return `SENTENCES` random pairs, whose sides have 1 to `longest` tokens."""
    generator = random.Random(seed)

    def tokens() -> list[int]:
        length = generator.randint(1, longest)
        return [generator.randrange(len(TARGET_SPECIALS), len(WORDS)) for _ in range(length)]

    return make_batch([Example(tokens(), tokens(), n) for n in range(SENTENCES)], VOCABULARIES)


def make_update(update: Update, seed: int = 0, longest: int = 7) -> Tensor:
    """Make an update with one batch, see `batch_of`; return its report."""
    update.add(batch_of(seed, longest), SENTENCES)
    return update.step((RATE,))


def update_of(
    model: SparseNMTModel,
    *,
    padded: bool = True,
    graphs: str = "on",
    norm: float = 5.0,
    optim: str = "adam",
) -> Update:
    """Return the updates of a model.

    Args:
        model: trained in place.
        padded: whether batches are padded to few shapes, as graphs need; else there are no graphs.
        graphs: `cuda_graphs` of the configuration; on a CPU, plain calls stand in for them.
        norm: the largest norm of a gradient.
        optim: the optimiser.
    """
    optimizer = OptimizerConfig(optim, learning_rate=1.0, max_grad_norm=norm)
    return Update(
        model,
        build_optimizer(model, optimizer),
        config=TrainingConfig(optimizer, cuda_graphs=graphs),
        vocabularies=VOCABULARIES,
        shapes=Shapes(SENTENCES) if padded else None,
    )
