"""The committed model of release 1.0, which reverses its source of letters, and changes of it."""

import copy
import warnings
from dataclasses import replace

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from tests.commands import ROOT

FOLDER = ROOT / "tests" / "data" / "model_1.0"
LINES = ["a b c", "f e d b a c", "b b a", "a a a a a a a a"]  # sources


def load_without_warning() -> LoadedModel:
    """Load the model, which warns that its folder has no checksums."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(FOLDER)


def with_smaller_scores(model: LoadedModel) -> LoadedModel:
    """Return the model with scores so much smaller that more outputs are possible: up to 1,181."""
    network = copy.deepcopy(model.model)
    with torch.no_grad():
        network.generator.weight /= 1.3
    return replace(model, model=network)


def with_softmax_output(model: LoadedModel) -> LoadedModel:
    """Return the model with softmax of small scores, under which every output is possible."""
    network = copy.deepcopy(model.model)
    with torch.no_grad():
        network.generator.weight /= 3
    network.generator.alpha = 1.0
    return replace(model, model=network)


def with_softmax_attention(model: LoadedModel) -> LoadedModel:
    """Return the model with dense attention."""
    network = copy.deepcopy(model.model)
    network.decoder.attn.alpha = 1.0
    return replace(model, model=network, config=replace(model.config, global_attention_alpha=1.0))


def writing_right_to_left(model: LoadedModel) -> LoadedModel:
    """Return the model as one that is said to write from right to left."""
    return replace(model, task=replace(model.task, right_to_left=True))


def without_attention(model: LoadedModel) -> LoadedModel:
    """Return the model as one that is said to have no attention."""
    return replace(model, config=replace(model.config, global_attention="none"))


def in_another_order(model: LoadedModel) -> LoadedModel:
    """Return the model with the first of its target letters behind the others.

    If two letters just changed places, an order that is applied the wrong way round would not show.
    """
    source, target = model.vocabularies
    specials = len(TARGET_SPECIALS)
    order = [*range(specials), *range(specials + 1, len(target.tokens)), specials]
    network = copy.deepcopy(model.model)
    output, embeddings = network.generator, network.decoder.embeddings
    with torch.no_grad():
        for weight in (output.weight, output.bias, embeddings.word_lut.weight):
            weight.copy_(weight[order])
    tokens = tuple(target.tokens[index] for index in order)
    return replace(model, model=network, vocabularies=Vocabularies(source, Vocabulary(tokens)))
