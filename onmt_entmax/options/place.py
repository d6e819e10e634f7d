"""The options of one place: the command line, or a YAML file.

Names of other versions of OpenNMT-py are read under those of here. What cannot be obeyed to the
letter is refused, or noted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.errors import nearest
from onmt_entmax.files.parsing import Layout
from onmt_entmax.options.declared import stock_names
from onmt_entmax.options.result import Notes
from onmt_entmax.options.rivals import SIDES
from onmt_entmax.options.stock import ALONE, EQUAL, IGNORED, NEAREST, REFUSED, RENAMED
from onmt_entmax.options.values import OptionError, read_value
from onmt_entmax.rules import Rule, shown

_EMPTY = (None, "")  # values of keys without a value
# Stands for an option that the command does not have, and whose value is not read.
_UNKNOWN = Option([], Rule(str))


def read_flags(
    options: Mapping[str, Option], arguments: Sequence[str], notes: Notes
) -> dict[str, Any]:
    """Return the words of each flag: a list, or one word, or true for a switch.

    Args:
        options: those of the command.
        arguments: the command line, without the program's name.
        notes: receives flags that are given twice, and values that are assumed.

    Raises:
        OptionError: an option is unknown, or has too few or too many values.
    """
    flags = _words_of_flags(options, arguments, notes)
    return {name: _flag_value(name, options, words, notes) for name, words in flags.items()}


def _words_of_flags(
    options: Mapping[str, Option], arguments: Sequence[str], notes: Notes
) -> dict[str, list[str]]:
    """Return the words after each flag; the last ones if it is given twice."""
    flags: dict[str, list[str]] = {}
    earlier: list[tuple[str, list[str]]] = []  # flags that a later one replaces
    name = ""
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            option = look_up(name, options, "command line: -")
            if name in flags:
                if option.many:
                    raise OptionError(f"command line: -{name}: name all values after one -{name}")
                earlier.append((name, flags[name]))
            flags[name] = [value] if equals else []
        elif not name:
            raise OptionError(f"command line: {word!r} does not follow an option such as -config")
        else:
            flags[name].append(word)
    for name, words in earlier:
        if words == flags[name]:
            notes.repeated.append(f"-{name}")
        else:
            last = " ".join([f"-{name}", *flags[name]])
            notes.warnings.append(f"command line: -{name} is given twice; the last counts: {last}")
    return flags


def _flag_value(
    name: str, options: Mapping[str, Option], words: list[str], notes: Notes
) -> list[str] | str | bool:
    """Return what the words after a flag are as a value; see `read_flags`."""
    option = look_up(name, options, "command line: -")
    if option.rule.kind is bool and not words:
        return True
    if name in ALONE and not words:
        notes.replaced.append(f"-{name} without a value as -{name} {ALONE[name]}")
        return ALONE[name]
    if option.many:
        return words
    if len(words) != 1:
        raise OptionError(f"command line: -{name}: expected one value, got {len(words)}")
    return words[0]


def under_names_here(content: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the options of a place under their names here.

    Raises:
        OptionError: two names of one option have different values.
    """
    renamed: dict[str, Any] = {}
    names_there: dict[str, str] = {}  # by the names here, for the error
    for key, value in content.items():
        name = key if isinstance(key, str) else shown(key)
        for name_here in RENAMED.get(name, (name,)):
            if name_here in renamed:
                before = renamed[name_here]
                if value in _EMPTY:
                    continue
                if before not in _EMPTY and before != value:
                    raise OptionError(
                        f"{where}{name}: is the same option as {names_there[name_here]} here, with "
                        "another value; delete one"
                    )
            renamed[name_here] = value
            names_there[name_here] = name
    return renamed


def note_renamed(names: Iterable[str], read: Mapping[str, Any], notes: Notes) -> None:
    """Note which names of a place are those of other versions, where their options are read."""
    for name in names:
        names_here = RENAMED.get(name, ())
        if not read.keys().isdisjoint(names_here):
            notes.replaced.append(f"{name} as {' and '.join(names_here)}")


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
    if isinstance(value, str) and (name, value) in EQUAL:
        # Another spelling of a value.
        notes.replaced.append(f"{name} {value} as {EQUAL[name, value]}")
        return {name: EQUAL[name, value]}
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
    for both, sides in SIDES.items():
        size = place.get(both, -1)
        if size == -1:  # not set
            continue
        for side in sides:
            if place.get(side, size) != size:
                first, second = (f" (line {lines[n]})" if n in lines else "" for n in (both, side))
                notes.warnings.append(
                    f"{where}: {both}: {size}{first} replaces {side}: {place[side]}{second}; "
                    "delete one"
                )


def look_up(name: str, options: Mapping[str, Option], where: str, in_file: bool = False) -> Option:
    """Return the option of a name; if there is none, say what it may have been.

    Args:
        name: as it is given, or its name here.
        options: those of the command.
        where: begins the error.
        in_file: whether a YAML file gives it, which several commands may share.

    Raises:
        OptionError: there is no such option.
    """
    for each in (name, *RENAMED.get(name, ())[:1]):
        if each in options:
            return options[each]
    if name in IGNORED:
        return _UNKNOWN
    if name in REFUSED:
        raise OptionError(f"{where}{name:.80}: no such option; {REFUSED[name]}")
    if command := _command_of(name):
        if in_file:
            return _UNKNOWN
        raise OptionError(f"{where}{name:.80}: no such option; onmt-entmax {command} has it")
    raise OptionError(f"{where}{name:.80}: no such option{nearest(name, options)}")


def _command_of(name: str) -> str:
    """Return the command for which OpenNMT-py has an option, or an empty string."""
    if name in stock_names("train"):
        return "train"
    return "translate" if name in stock_names("translate") else ""
