"""The lines of `train.yaml` that say what a model of tables reads and writes."""

from collections.abc import Sequence
from typing import NamedTuple

from onmt_entmax.cli.yaml_lines import flow_text
from onmt_entmax.strings.copy_frequency import useful_frequency
from onmt_entmax.strings.task import RIGHT_TO_LEFT, StringTask
from onmt_entmax.strings.task_record import task_record


def task_line(task: StringTask) -> str:
    """Return the option `task` as a line of YAML."""
    return f"task: {flow_text(task_record(task))}"


class TaskSettings(NamedTuple):
    """The options of a model's task, its direction and the symbols that it copies.

    Attributes:
        lines: the options as lines of YAML.
        messages: texts for the user: which symbols are copied, and the direction if it is right to
            left.
    """

    lines: list[str]
    messages: list[str]


def task_settings(
    pairs: Sequence[tuple[str, str]],
    task: StringTask,
    *,
    copy_frequency: int | None,
    right_to_left: bool,
) -> TaskSettings:
    """Return the settings of a task.

    Args:
        pairs: training pairs: lines of tokens of source and target.
        task: task of the rows.
        copy_frequency: value of `--copy`; None: the training pairs decide.
        right_to_left: whether the model writes the last symbol first.
    """
    copying = _chosen_copying(pairs, task) if copy_frequency is None else _copying(copy_frequency)
    lines = [task_line(task)]
    messages = [f"copy_frequency: {copying.frequency}: {copying.why}"]
    if right_to_left:
        lines.append(f"target_order: {RIGHT_TO_LEFT}")
        messages.append(f"target_order: {RIGHT_TO_LEFT}; the files stay in natural order")
    lines.append(f"copy_frequency: {copying.frequency}  # {copying.why}")
    return TaskSettings(lines, messages)


class _Copying(NamedTuple):
    """The option `copy_frequency`, with its meaning and reason.

    Attributes:
        frequency: value of the option.
        why: what this value means, and why it was chosen.
    """

    frequency: int
    why: str


def _chosen_copying(pairs: Sequence[tuple[str, str]], task: StringTask) -> _Copying:
    """Return the option that fits the training pairs."""
    units = [(task.marks_and_units(source.split())[1], target.split()) for source, target in pairs]
    frequency = useful_frequency(units, alike=task.source == task.target)
    return _copying(
        frequency, f"since {'most' if frequency else 'too few'} targets have the rare symbols"
    )


def _copying(frequency: int, reason: str = "") -> _Copying:
    """Return the option `copy_frequency` with its meaning and reason.

    Args:
        frequency: symbols of fewer training sources are copied; 0: none is.
        reason: why this value was chosen; empty if the user named it.
    """
    if frequency:
        copied = f"copy unknown symbols, and those of fewer than {frequency} training sources"
    else:
        copied = "copy no symbol"
    because = f", {reason}" if reason else ""
    return _Copying(frequency, f"{copied}{because}; --copy sets it")
