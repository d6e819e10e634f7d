"""The values of the options of one place: the command line, or a YAML file.

What cannot be obeyed to the letter is refused, or noted: another spelling of a value, something
close that is done instead, an option without effect.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.files.parsing import Layout
from onmt_entmax.options.names import look_up
from onmt_entmax.options.result import Notes
from onmt_entmax.options.rivals import NOT_SET, SIDES
from onmt_entmax.options.stock import EQUAL_VALUES, IGNORED, NEAREST, REFUSED
from onmt_entmax.options.values import OptionError, read_value


def read_place(
    options: Mapping[str, Option],
    content: Mapping[str, Any],
    where: str,
    notes: Notes,
    layout: Layout | None = None,
) -> dict[str, Any]:
    """Return the options of one place, read and checked.

    Args:
        options: those of the command.
        content: values by name.
        where: names the place.
        notes: receives what is ignored or replaced.
        layout: of the YAML file, if the place is one.

    Raises:
        OptionError: names the first option that is wrong.
    """
    in_file = layout is not None
    place: dict[str, Any] = {}
    for name, value in content.items():
        option = look_up(name, options, f"{where}: ", in_file)
        if name not in options or name in IGNORED:
            if value != option.default:
                notes.ignored.append(name)
        else:
            place |= _read_option(name, option, value, where, in_file, notes)
    _warn_of_sides(place, where, {} if layout is None else layout.lines, notes)
    return place


def _read_option(
    name: str, option: Option, value: Any, where: str, in_file: bool, notes: Notes
) -> dict[str, Any]:
    """Return an option as `{name: value}`; `{}` if something close takes its place.

    Args:
        name: of the option.
        option: of the name.
        value: as YAML reads it, or the words after a flag.
        where: names the place.
        in_file: whether the place is a YAML file.
        notes: receives what is ignored or replaced.

    Raises:
        OptionError: the option is not supported, or the value does not fit.
    """
    if in_file and not option.required and _is_empty(option, value):
        # A key without a value: the default.
        if option.default not in (None, ""):
            notes.ignored.append(f"{name} (empty)")
        return {name: option.default}
    if isinstance(value, str) and (name, value) in EQUAL_VALUES:
        # Another spelling of a value.
        notes.replaced.append(f"{name} {value} as {EQUAL_VALUES[name, value]}")
        return {name: EQUAL_VALUES[name, value]}
    if name in REFUSED and not _is_default(option, value):
        # What the option asks for is not supported.
        raise OptionError(f"{where}: {name}: not supported: {REFUSED[name]}")
    if name in NEAREST and not _is_default(option, value):
        # Something close is done, whatever the value.
        notes.replaced.append(f"{name} as {NEAREST[name]}")
        return {}
    return {name: read_value(option, value, f"{where}: {name}")}


def _is_empty(option: Option, value: Any) -> bool:
    """Whether a key of a file has no value; the empty text is a value of an option for text."""
    return value is None or (value == "" and option.rule.kind is not str)


def _is_default(option: Option, value: Any) -> bool:
    """Whether a value, of whatever type, is the default of its option."""
    with suppress(OptionError):
        return bool(read_value(option, value, "") == option.default)
    return False


def _warn_of_sides(
    place: Mapping[str, Any], where: str, lines: Mapping[str, int], notes: Notes
) -> None:
    """Warn of an option of one side that the option of both sides, in the same place, replaces.

    Args:
        place: options that were read.
        where: names the place.
        lines: those of the options in a YAML file.
        notes: receives the warnings.
    """
    line_of = {name: f" (line {number})" for name, number in lines.items()}
    for both, sides in SIDES.items():
        size = place.get(both, NOT_SET)
        if size == NOT_SET:
            continue
        for side in sides:
            if place.get(side, size) != size:
                notes.warnings.append(
                    f"{where}: {both}: {size}{line_of.get(both, '')} replaces "
                    f"{side}: {place[side]}{line_of.get(side, '')}; delete one"
                )
