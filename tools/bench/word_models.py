"""Random models and sentences of the size of word-level translation, for `search.py`."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.sparse import log_entmax
from tools.bench.bisection import scale_for_support

VOCABULARY = 18_000  # tokens of each side, special ones included
# Every vocabulary has these words, whatever its special tokens are.
WORDS = VOCABULARY - 10
SUPPORT = 5  # tokens of positive probability
SCALED_ON = 32  # sentences on which the support is measured
LONGEST_TARGET = 20  # words of their targets


def random_lines(count: int) -> list[str]:
    """Return sentences of 4 to 40 random words."""
    generator = random.Random(1)
    lengths = [generator.randint(4, 40) for _ in range(count)]
    return [" ".join(f"w{generator.randrange(WORDS)}" for _ in range(length)) for length in lengths]


class WordModels(NamedTuple):
    """Folders of two models with the same weights."""

    softmax: Path
    entmax: Path


def write_word_models(folder: Path) -> WordModels:
    """Write a softmax and a 1.5-entmax model with the same weights; return their folders.

    The output layer is scaled to the support of a trained 1.5-entmax model.
    """
    torch.manual_seed(0)
    vocabularies = Vocabularies(_vocabulary(SOURCE_SPECIALS), _vocabulary(TARGET_SPECIALS))
    softmax = ModelConfig(
        encoder_type="brnn", generator_alpha=1.0, global_attention_alpha=1.0, dropout=0.0
    )
    entmax = replace(softmax, generator_alpha=1.5, global_attention_alpha=1.5)
    softmax_model = build_model(softmax, vocabularies).eval()
    scale_output(softmax_model, _batch(vocabularies))
    entmax_model = build_model(entmax, vocabularies).eval()
    entmax_model.load_state_dict(softmax_model.state_dict())
    folders = WordModels(folder / "softmax", folder / "entmax")
    save(folders.softmax, softmax_model, softmax, vocabularies, {})
    save(folders.entmax, entmax_model, entmax, vocabularies, {})
    return folders


def _vocabulary(specials: tuple[str, ...]) -> Vocabulary:
    """Return a vocabulary of `VOCABULARY` tokens."""
    return Vocabulary((*specials, *(f"w{n}" for n in range(VOCABULARY - len(specials)))))


def _batch(vocabularies: Vocabularies) -> Batch:
    """Return sentences, the longest first, with beginnings of themselves as targets."""
    sources = [list(vocabularies.source.encode(line.split())) for line in random_lines(SCALED_ON)]
    # Any ids will do as targets: the models are random.
    examples = [
        Example(source, source[:LONGEST_TARGET], index) for index, source in enumerate(sources)
    ]
    examples.sort(key=lambda example: len(example.source), reverse=True)
    return make_batch(examples, vocabularies)


@torch.no_grad()
def scale_output(model: SparseNMTModel, batch: Batch) -> None:
    """Scale the output layer of a random model to about `SUPPORT` tokens with 1.5-entmax."""
    output = model.generator
    hidden, _ = model.hidden_states(batch)
    output.bias.zero_()
    scores = output.scores(hidden)

    def support_of(factor: float) -> float:
        return int((log_entmax(scores * factor, 1.5) > -torch.inf).sum()) / len(scores)

    # Eleven halvings leave 0.5 % between the bounds: 10,000 ** (1 / 2048).
    factor = scale_for_support(support_of, SUPPORT, smallest=0.1, largest=1000, halvings=11)
    output.weight.mul_(factor)
