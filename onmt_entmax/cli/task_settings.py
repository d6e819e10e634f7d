"""The lines of `train.yaml` that say what a model of tables reads and writes."""

import argparse
import json
from collections.abc import Sequence
from typing import NamedTuple

from onmt_entmax.strings.copying import useful_frequency
from onmt_entmax.strings.task import RIGHT_TO_LEFT, StringTask
from onmt_entmax.strings.task_record import task_record


def task_line(task: StringTask) -> str:
    """Return the option `task` as a line of YAML."""
    return f"task: {json.dumps(task_record(task), ensure_ascii=False)}"


class TaskSettings(NamedTuple):
    """The task of a model, with its direction and the symbols that are copied."""

    lines: list[str]
    """Lines of YAML."""
    messages: list[str]
    """What was chosen of it, for the user: copying, and the direction if it is right to left."""


def task_settings(
    pairs: Sequence[tuple[str, str]], task: StringTask, options: argparse.Namespace
) -> TaskSettings:
    """Return the settings of a task.

    Args:
        pairs: of the training data.
        task: of the rows.
        options: `right_to_left`, and `copy`, the frequency that the user names, or None.
    """
    copying = _chosen_copying(pairs, task) if options.copy is None else _copying(options.copy)
    settings = TaskSettings(
        [task_line(task)], [f"copy_frequency: {copying.frequency}: {copying.why}"]
    )
    if options.right_to_left:
        settings.lines.append(f"target_order: {RIGHT_TO_LEFT}")
        settings.messages.append(f"target_order: {RIGHT_TO_LEFT}; the files stay in natural order")
    settings.lines.append(f"copy_frequency: {copying.frequency}  # {copying.why}")
    return settings


class _Copying(NamedTuple):
    """Which symbols are copied."""

    frequency: int
    """The option `copy_frequency`."""
    why: str
    """What it means, for people."""


def _chosen_copying(pairs: Sequence[tuple[str, str]], task: StringTask) -> _Copying:
    """Return which symbols it helps to copy, by the training pairs."""
    units = [(task.marks_and_units(source.split())[1], target.split()) for source, target in pairs]
    frequency = useful_frequency(units, alike=task.source == task.target)
    return _copying(
        frequency, f"since {'most' if frequency else 'too few'} targets have the rare symbols"
    )


def _copying(frequency: int, reason: str = "") -> _Copying:
    """Return copying of symbols that fewer than `frequency` training sources have.

    Args:
        frequency: 0 copies no symbol.
        reason: for this frequency; empty if the user named it.
    """
    if frequency:
        copied = f"copy unknown symbols, and those of fewer than {frequency} training sources"
    else:
        copied = "copy no symbol"
    because = f", {reason}" if reason else ""
    return _Copying(frequency, f"{copied}{because}; --copy sets it")
