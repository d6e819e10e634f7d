"""Group the models that can be searched together, which have one direction and the same tokens.

A `Transducer` has one group for a model or a token-level ensemble, several for a sequence-level
ensemble. `group_search.py` searches a group.
"""

from __future__ import annotations

from collections.abc import Sequence

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.query_checks import TransducerError
from onmt_entmax.strings.task import StringTask


def groups_of(models: Sequence[LoadedModel]) -> list[list[LoadedModel]]:
    """Return the groups of models; those that write from left to right come first."""
    groups: dict[object, list[LoadedModel]] = {}
    for model in sorted(models, key=lambda model: model.right_to_left):
        tokens = [frozenset(side.tokens) for side in model.vocabularies]
        key = model.right_to_left, model.task.copies, *tokens
        groups.setdefault(key, []).append(model)
    return list(groups.values())


def common_task(models: Sequence[LoadedModel]) -> StringTask:
    """Return the task of models, which may differ in direction, copying and columns of tables.

    Raises:
        TransducerError: if tasks differ otherwise; the message names the difference.
    """
    first = models[0]
    for model in models[1:]:
        for name in ("source", "target", "languages", "has_tags"):
            ours, theirs = getattr(first.task, name), getattr(model.task, name)
            if ours != theirs:
                property_name = name.replace("_", " ")
                raise TransducerError(
                    f"{first.folder} and {model.folder}: models of different tasks; "
                    f"{property_name}: {ours} and {theirs}"
                )
    return first.task
