"""The lines of `train.yaml` that say what a model of tables reads and writes."""

import argparse
import json
from collections.abc import Sequence

from onmt_entmax.strings.copying import useful_frequency
from onmt_entmax.strings.task import RIGHT_TO_LEFT, StringTask
from onmt_entmax.strings.task_record import task_record


def task_line(task: StringTask) -> str:
    """Return the option `task` as a line of YAML."""
    return f"task: {json.dumps(task_record(task), ensure_ascii=False)}"


def task_settings(
    pairs: Sequence[tuple[str, str]], task: StringTask, options: argparse.Namespace
) -> list[str]:
    """Return the lines of a configuration that say what the model reads and writes.

    Print what was chosen: which symbols are copied, and the direction, if it is not the usual one.

    Args:
        pairs: of the training data.
        task: of the rows.
        options: `right_to_left` and `copy`.
    """
    lines = [task_line(task)]
    frequency, why = _copy_frequency(pairs, task, options.copy)
    print(f"copy_frequency: {frequency}: {why}")
    if options.right_to_left:
        print(f"target_order: {RIGHT_TO_LEFT}; the files stay in natural order")
        lines.append(f"target_order: {RIGHT_TO_LEFT}")
    return [*lines, f"copy_frequency: {frequency}  # {why}"]


def _copy_frequency(
    pairs: Sequence[tuple[str, str]], task: StringTask, chosen: int | None
) -> tuple[int, str]:
    """Return `copy_frequency`, and what it means, for people.

    Args:
        pairs: of the training data.
        task: of the rows.
        chosen: by the user; None: by the data.
    """
    frequency, reason = chosen, ""
    if frequency is None:
        units = [
            (task.marks_and_units(source.split())[1], target.split()) for source, target in pairs
        ]
        frequency = useful_frequency(units, alike=task.source == task.target)
        reason = f", since {'most' if frequency else 'too few'} targets have the rare symbols"
    if frequency:
        copied = f"copy unknown symbols, and those of fewer than {frequency} training sources"
    else:
        copied = "copy no symbol"
    return frequency, f"{copied}{reason}; --copy sets it"
