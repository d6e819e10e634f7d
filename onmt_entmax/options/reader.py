"""Read the options of a command: its flags, and the YAML file that they name.

OpenNMT-py's parser silently drops misspelt keys of a file. Here, unknown names and wrong values are
errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import Layout, parse_yaml
from onmt_entmax.options.flags import read_flags
from onmt_entmax.options.given import COMMAND_LINE, Options
from onmt_entmax.options.names import find_option, note_renamed, renamed_options
from onmt_entmax.options.needs import without_unread
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.place import read_place
from onmt_entmax.options.precedence import batch_type_conflict, earlier_in_force, replaced_by
from onmt_entmax.options.values import OptionError

_LARGEST_FILE = 1 << 20  # bytes


@dataclass(frozen=True)
class _Place:
    """The options of the command line, or of the file, at three stages of reading.

    Attributes:
        written: all values as the user wrote them, by the names that the user wrote.
        renamed: values that the other place does not replace, by this package's names.
        values: the same values, checked and converted to their types.
    """

    written: Mapping[str, Any]
    renamed: Mapping[str, Any]
    values: Mapping[str, Any]


_NO_FILE = _Place({}, {}, {})


def read_options(options: Mapping[str, Option], arguments: Sequence[str]) -> Options:
    """Read `-config FILE` and the flags.

    A flag replaces its own value in the file, and the values of options that it excludes. Such
    values of the file are not checked.

    Args:
        options: options of the command.
        arguments: the command line, without the program's name.

    Raises:
        OptionError: names the first option that is wrong.
    """
    notes = Notes()
    words = read_flags(options, arguments, notes)
    path = words.pop("config", None)
    flags = _read_words(options, words, notes)
    file = _read_file(options, path, flags.values, notes) if path else _NO_FILE
    for place in (flags, file):
        note_renamed(place.written, place.renamed, notes)
    origin = dict.fromkeys(file.values, str(path)) | dict.fromkeys(flags.values, COMMAND_LINE)
    defaults = {name: option.default for name, option in options.items()}
    values = {**defaults, **file.values, **flags.values, "config": path}
    _refuse_missing(options, values)
    return without_unread(options, Options(values, origin, notes))


def _read_words(options: Mapping[str, Option], words: Mapping[str, Any], notes: Notes) -> _Place:
    """Return the options of the command line.

    Args:
        options: options of the command.
        words: the words after each flag.
        notes: receives what is ignored or replaced.

    Raises:
        OptionError: names the first option that is wrong.
    """
    renamed = renamed_options(words, f"{COMMAND_LINE}: -")
    return _Place(words, renamed, read_place(options, renamed, COMMAND_LINE, notes))


def _read_file(
    options: Mapping[str, Option], path: str, flags: Mapping[str, Any], notes: Notes
) -> _Place:
    """Return the options of a YAML file that the flags leave in force.

    Args:
        options: options of the command.
        path: path of the file.
        flags: the options of the command line.
        notes: receives what is ignored or replaced, and a warning if a flag changes the meaning of
            `batch_size`.

    Raises:
        OptionError: names the first option that is wrong.
    """
    layout = Layout()
    written = read_yaml(path, layout)
    renamed = renamed_options(written, f"{path}: ")
    for name in renamed:  # also of those that flags replace, which may be misspelt
        find_option(name, options, f"{path}: ", in_file=True)
    conflict = batch_type_conflict(renamed, flags)
    if conflict is not None:
        notes.warnings.append(f"{COMMAND_LINE}: {conflict}")
    replaced = {*flags, *replaced_by(flags)}
    unreplaced = {name: value for name, value in renamed.items() if name not in replaced}
    values = earlier_in_force(read_place(options, unreplaced, path, notes, layout), flags)
    notes.repeated += layout.repeats
    return _Place(written, unreplaced, values)


def _refuse_missing(options: Mapping[str, Option], values: Mapping[str, Any]) -> None:
    """Raise an OptionError if a required option has no value."""
    path = values["config"]
    hint = "; give -{}, or -config FILE with it" if path is None else ""
    for name, option in options.items():
        if option.required and not values[name]:
            text = f"{name}: this option is required{hint.format(name)}"
            raise OptionError(f"{path or COMMAND_LINE}: {text}")


def read_yaml(path: str, layout: Layout | None = None) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Args:
        path: path of the file.
        layout: receives the places of keys; a key may then repeat with an equal value.

    Raises:
        OptionError: if the file cannot be read, is too large, empty or no YAML, or has a key twice.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
        if len(raw) > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE:,} bytes")
        content = parse_yaml(raw.decode(), layout)
    except FileNotFoundError:
        raise OptionError(no_such_file(path)) from None
    except (OSError, ValueError) as error:  # not UTF-8 or not YAML, too
        raise OptionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(content, dict):
        raise OptionError(f"{path}: expected `key: value` lines")
    return content
