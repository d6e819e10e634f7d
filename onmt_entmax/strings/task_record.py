"""The record of a task in `train.yaml` and in a model folder.

It consists of three options: `task`, `target_order` and `copy_frequency`. `task` is a mapping with
columns, separators and, if its names usually mean other columns, the heading. Whether sources begin
with their language is not recorded, since the training data shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onmt_entmax.rules import shown
from onmt_entmax.strings.task import (
    INFLECTION,
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    SOURCE,
    TAGS,
    TARGET,
    TRANSLATION,
    StringTask,
    TaskError,
)
from onmt_entmax.strings.units import Unit

RECORDED = ("task", "target_order", "copy_frequency")
"""Options that `recorded_task` reads"""


def task_record(task: StringTask) -> dict[str, Any]:
    """Return the mapping under `task` in `train.yaml`: columns, and separators of some of them.

    The heading of the tables is there if the task has one.
    """
    separators = {
        column: unit.separator
        for column, unit in ((SOURCE, task.source), (TARGET, task.target))
        if unit.kind == "symbols"
    }
    if task.has_tags:
        separators[TAGS] = task.tag_separator
    heading = {"heading": list(task.heading)} if task.heading else {}
    return {"columns": list(task.columns), **heading, "separators": separators}


def recorded_task(options: Mapping[str, Any], languages: bool) -> StringTask:
    """Return the task that the options of a training describe.

    Args:
        options: `task`, `target_order` and `copy_frequency`, of which any may be missing.
        languages: whether sources begin with their language.

    Raises:
        TaskError: names the option that is wrong.
    """
    order = options.get("target_order", LEFT_TO_RIGHT)
    if order not in (LEFT_TO_RIGHT, RIGHT_TO_LEFT):
        raise TaskError(f"target_order: {shown(order)} is none of {LEFT_TO_RIGHT}, {RIGHT_TO_LEFT}")
    return replace(
        _task_of(options.get("task"), languages),
        languages=languages,
        right_to_left=order == RIGHT_TO_LEFT,
        copies=bool(options.get("copy_frequency", 0)),
    )


def _task_of(content: object, languages: bool) -> StringTask:
    """Return the columns and units of the option `task`; if it is None, those of the usual task.

    Raises:
        TaskError: names the key that is wrong.
    """
    if content is None:
        return INFLECTION if languages else TRANSLATION
    if not isinstance(content, Mapping):
        raise TaskError(f"task: must be a mapping, not {shown(content)}")
    try:
        return _read(content)
    except TaskError as error:
        raise TaskError(f"task: {error}") from None


def _read(content: Mapping[Any, Any]) -> StringTask:
    """Return the task of a mapping, the inverse of `task_record`.

    Source and target are characters without a separator; tags have semicolons between them.

    Raises:
        TaskError: names the key that is wrong.
    """
    for key in content:
        if key not in ("columns", "heading", "separators"):
            raise TaskError(f"{shown(key)}: no such key; there are columns, heading and separators")
    columns = _texts("columns", content.get("columns"), "[source, target]")
    heading = _texts("heading", content.get("heading", []), "[form, lemma]")
    separators = content.get("separators")
    separators = {} if separators is None else _checked_separators(separators)
    return StringTask(
        columns,
        heading=heading,
        source=Unit.between(separators.get(SOURCE, "")),
        target=Unit.between(separators.get(TARGET, "")),
        tag_separator=separators.get(TAGS, ";"),
    )


def _texts(key: str, content: object, example: str) -> tuple[str, ...]:
    """Return a list of texts of a YAML file.

    Args:
        key: its key, for the error.
        content: what should be a list of texts.
        example: such a list, for the error.

    Raises:
        TaskError: if it is no such list.
    """
    if not isinstance(content, list) or not all(isinstance(text, str) for text in content):
        raise TaskError(f"{key}: must be a list such as {example}, not {shown(content)}")
    return tuple(content)


def _checked_separators(separators: object) -> Mapping[str, str]:
    """Return the separators of a YAML file, by their columns.

    Raises:
        TaskError: names the key that is wrong.
    """
    if not isinstance(separators, dict):
        raise TaskError(f"separators: must map columns to texts, not {shown(separators)}")
    for column, separator in separators.items():
        if column not in (SOURCE, TARGET, TAGS):
            raise TaskError(f"separators: {shown(column)} is none of source, target and tags")
        if not isinstance(separator, str):
            raise TaskError(f"separators: {column}: must be a text, not {shown(separator)}")
        if separator in ("\t", "\n", "\r"):
            raise TaskError(f"separators: {column}: must not be a tab or a line break")
    if not separators.get(TAGS, ";"):
        raise TaskError("separators: tags: must not be empty")
    return separators
