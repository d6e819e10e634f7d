"""Load the models of an ensemble, and combine them in one stepper: a token-level ensemble."""

from collections.abc import Sequence
from pathlib import Path

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.reordering import with_tokens_in_order
from onmt_entmax.search import EnsembleStepper, ModelStepper, Stepper


class TranslationError(UserError):
    """An input that cannot be translated, or models that do not fit together."""


def loaded_models(
    models: Path | str | LoadedModel | Sequence[Path | str | LoadedModel],
    device: torch.device | None = None,
) -> list[LoadedModel]:
    """Return one model or several, and load those that are named by a folder.

    Args:
        models: run or model folders, or loaded models, which stay on their devices.
        device: the device of the models that are loaded here; the CPU if None.

    Raises:
        CheckpointError: a folder cannot be read.
    """
    listed = [models] if isinstance(models, (str, Path, LoadedModel)) else models
    return [model if isinstance(model, LoadedModel) else load(model, device) for model in listed]


def make_stepper(
    models: Sequence[LoadedModel],
    *,
    attention: bool,
    temperature: float,
    dtype: torch.dtype | None = None,
) -> Stepper:
    """Return a stepper of one model, or of a token-level ensemble.

    Args:
        models: loaded models, whose vocabularies hold the same tokens in any order.
        attention: whether steps return attention.
        temperature: scores are divided by it before they become probabilities.
        dtype: the type of the factors of products in LSTMs; None: the weights' own.

    Raises:
        SearchError: if a model has no products of that type.
        TranslationError: if the vocabularies hold different tokens.
    """
    first = models[0].vocabularies
    networks = [_with_ids_of(first, loaded, number) for number, loaded in enumerate(models, 1)]
    steppers = [
        ModelStepper(network, first.target, attention, temperature, dtype) for network in networks
    ]
    return EnsembleStepper(steppers) if len(steppers) > 1 else steppers[0]


def _with_ids_of(first: Vocabularies, loaded: LoadedModel, number: int) -> SparseNMTModel:
    """Return a model with the token ids of the first model's vocabularies.

    Args:
        first: the vocabularies of the first model.
        loaded: the model.
        number: the number of the model, from 1, for errors.

    Raises:
        TranslationError: its vocabularies hold different tokens.
    """
    if loaded.vocabularies == first:
        return loaded.model
    for side in ("source", "target"):
        vocabulary, first_vocabulary = getattr(loaded.vocabularies, side), getattr(first, side)
        unshared = sorted(set(vocabulary.tokens) ^ set(first_vocabulary.tokens))
        if unshared:
            token = unshared[0]
            has, lacks = (number, 1) if token in vocabulary else (1, number)
            raise TranslationError(
                f"the models of an ensemble must have vocabularies of the same tokens; the {side} "
                f"vocabulary of model {has} has {token!r}, that of model {lacks} has not"
            )
    return with_tokens_in_order(loaded.model, loaded.config, loaded.vocabularies, first)


def refuse_incompatible(models: Sequence[LoadedModel]) -> None:
    """Refuse models that cannot form a token-level ensemble, whatever their vocabularies are.

    Raises:
        TranslationError: if they write in different directions, or only some copy unknown symbols.
    """
    first, *others = models
    for other in others:
        if other.right_to_left != first.right_to_left:
            raise TranslationError(
                f"{first.folder} and {other.folder}: one writes from left to right, the other "
                "from right to left; average them with onmt-entmax combine; of inflections, "
                "inflect does"
            )
        if other.task.copies != first.task.copies:
            raise TranslationError(
                f"{first.folder} and {other.folder}: one copies unknown symbols, the other "
                "does not; average them with onmt-entmax combine; of tables, predict does"
            )
