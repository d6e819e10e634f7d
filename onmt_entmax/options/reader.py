"""Reading options from YAML files and flags: unknown names and wrong values are errors.

OpenNMT-py's parser silently drops a misspelt key of a file, so files and flags are read here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.config import Option, declared
from onmt_entmax.errors import nearest
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import Layout, parse_yaml
from onmt_entmax.options.declared import stock_names
from onmt_entmax.options.rivals import SIDES, changed_batch_size, replaced_by, without_rivals
from onmt_entmax.options.stock import (
    ALONE,
    EQUAL,
    IGNORED,
    NEAREST,
    REFUSED,
    RENAMED,
    UNREAD,
)
from onmt_entmax.options.values import OptionError, read_value
from onmt_entmax.rules import Rule, shown

_LARGEST_FILE = 1 << 20  # bytes
_OFF: tuple[Any, ...] = (None, False, "", [], "none", "softmax")  # 0 is False


@dataclass
class Notes:
    """The given options that are not obeyed to the letter.

    Attributes:
        ignored: options without effect.
        replaced: `X as Y` for options that are read as something else.
        repeated: keys that are given twice with the same value.
        warnings: sentences about options that others overrule.
    """

    ignored: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return at most one line for each kind of note."""
        kinds = {
            "read as OpenNMT-py does not": self.replaced,
            "without effect here": self.ignored,
            "given twice, with equal values": self.repeated,
        }
        return [f"{kind}: {', '.join(parts)}" for kind, parts in kinds.items() if parts]


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    Attributes:
        values: by OpenNMT-py's names.
        origin: the source of each given value: the name of a file, or "command line".
        notes: on the given options, for the user.
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]
    notes: Notes = field(default_factory=Notes)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Whether the user set the option."""
        return name in self.origin

    def pick(self, kind: type) -> dict[str, Any]:
        """Return the options that are fields of a dataclass; lists as tuples."""
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.origin.get(name, 'default')}: {name}: {message}")


def read_options(options: Mapping[str, Option], arguments: Sequence[str]) -> Options:
    """Read `-config FILE` and the flags; a flag wins over the file, and over its rivals there.

    Of the file, only what no flag replaces is checked.

    Args:
        options: those of the command.
        arguments: the command line, without the program's name.

    Raises:
        OptionError: names the first option that is wrong.
    """
    notes, layout = Notes(), Layout()
    typed = _flags(options, arguments, notes)
    path = typed.pop("config", None)
    typed_here = _renamed(typed, "command line: -")
    flags = _place(options, typed_here, "command line", notes)
    written = read_yaml(path, layout) if path else {}
    in_file = _renamed(written, f"{path}: ")
    for name in in_file:
        _look_up(name, options, f"{path}: ", in_file=True)
    if (warning := changed_batch_size(in_file, flags)) is not None:
        notes.warnings.append(f"command line: {warning}")
    replaced = {*flags, *replaced_by(flags)}
    unreplaced = {name: value for name, value in in_file.items() if name not in replaced}
    from_file = without_rivals(_place(options, unreplaced, str(path), notes, layout), flags)
    notes.repeated += layout.repeats
    _note_renamed(typed, typed_here, notes)
    _note_renamed(written, unreplaced, notes)
    given = from_file | flags
    origin = {name: "command line" if name in flags else str(path) for name in given}
    defaults = {name: option.default for name, option in options.items()}
    values = defaults | given | {"config": path}
    _check_needs(options, values, origin, notes)
    return Options(values, origin, notes)


# --- one place: the command line or a file -----------------------------------------------------


def _flags(options: Mapping[str, Option], arguments: Sequence[str], notes: Notes) -> dict[str, Any]:
    """Return the words of each flag: a list, or one word, or true for a switch.

    Raises:
        OptionError: an option is unknown, or has too few or too many values.
    """
    flags: dict[str, Any] = {}
    name = ""
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            option = _look_up(name, options, "command line: -")
            if option.many and name in flags:
                raise OptionError(f"command line: -{name}: name all values after one -{name}")
            flags[name] = [value] if equals else []
        elif not name:
            raise OptionError(f"command line: {word!r} does not follow an option such as -config")
        else:
            flags[name].append(word)
    for name, words in flags.items():
        option = _look_up(name, options, "command line: -")
        if option.rule.kind is bool and not words:
            flags[name] = True
        elif name in ALONE and not words:
            notes.replaced.append(f"-{name} without a value as -{name} {ALONE[name]}")
            flags[name] = ALONE[name]
        elif not option.many:
            if len(words) != 1:
                raise OptionError(f"command line: -{name}: expected one value, got {len(words)}")
            (flags[name],) = words
    return flags


def _renamed(content: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the options of a place under their names here.

    Raises:
        OptionError: two names of one option have different values.
    """
    renamed: dict[str, Any] = {}
    for key, value in content.items():
        name = key if isinstance(key, str) else shown(key)
        names = RENAMED.get(name, (name,))
        for each in names:
            known = renamed.get(each)
            if value in (None, "") and each in renamed:
                continue
            if known not in (None, "") and known != value:
                old = next(n for n in content if n != key and each in RENAMED.get(n, (n,)))
                raise OptionError(
                    f"{where}{name}: is the same option as {old} here, with another value; "
                    "delete one"
                )
            renamed[each] = value
    return renamed


def _note_renamed(names: Iterable[str], read: Mapping[str, Any], notes: Notes) -> None:
    """Note which names of a place are those of other versions, where their options are read."""
    for name in names:
        names_here = RENAMED.get(name, ())
        if not read.keys().isdisjoint(names_here):
            notes.replaced.append(f"{name} as {' and '.join(names_here)}")


def _place(
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
        option = _look_up(name, options, f"{where}: ", in_file)
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


# Stands for an option that the command does not have, and whose value is not read.
_UNKNOWN = Option([], Rule(str))


def _look_up(name: str, options: Mapping[str, Option], where: str, in_file: bool = False) -> Option:
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


# --- all places together -----------------------------------------------------------------------


def _check_needs(
    options: Mapping[str, Option], values: dict[str, Any], origin: Mapping[str, str], notes: Notes
) -> None:
    """Check that required options are there, and those that other options need.

    Args:
        options: those of the command.
        values: of all options. Those that OpenNMT-py does not read either get their default back.
        origin: as `Options.origin`.
        notes: receives the options that are not read.

    Raises:
        OptionError: names the first option that lacks, or that nothing reads.
    """
    path = values["config"]
    for name, option in options.items():
        if option.required and not values[name]:
            hint = "" if path else f"; give -{name}, or -config FILE with it"
            raise OptionError(f"{path or 'command line'}: {name}: this option is required{hint}")
        if not option.needs or values[name] == option.default or _holds(option.needs, values):
            continue
        if name not in UNREAD:
            raise Options(values, origin).error(name, f"is only read with {option.needs}")
        notes.ignored.append(f"{name} (needs {option.needs})")
        values[name] = option.default


def _holds(condition: str, values: Mapping[str, Any]) -> bool:
    """Whether one of several options, between "or", is on or has the value (or key) it names."""
    for each in condition.split(" or "):
        name, _, value = each.partition(": ")
        held = values[name]
        if isinstance(held, dict):
            on = value in held
        elif value:
            on = held == value
        else:
            on = held not in _OFF
        if on:
            return True
    return False


# --- files -------------------------------------------------------------------------------------


def read_yaml(path: str, layout: Layout | None = None) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Args:
        path: of the file.
        layout: receives the places of keys; a key may then repeat with an equal value.

    Raises:
        OptionError: the file cannot be read, is too large, empty or not YAML, or has a key twice.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE:,} bytes")
        content = parse_yaml(text.decode(), layout)
    except FileNotFoundError:
        raise OptionError(no_such_file(path)) from None
    except (OSError, ValueError) as error:  # not UTF-8 or not YAML, too
        raise OptionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(content, dict):
        raise OptionError(f"{path}: expected `key: value` lines")
    return content
