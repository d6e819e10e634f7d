"""Reading the options of a command: its flags, and the YAML file that they name.

OpenNMT-py's parser silently drops a misspelt key of a file, so files and flags are read here:
unknown names and wrong values are errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import Layout, parse_yaml
from onmt_entmax.options.place import (
    look_up,
    note_renamed,
    read_flags,
    read_place,
    under_names_here,
)
from onmt_entmax.options.result import Notes, Options
from onmt_entmax.options.rivals import changed_batch_size, replaced_by, without_rivals
from onmt_entmax.options.stock import UNREAD
from onmt_entmax.options.values import OptionError

_LARGEST_FILE = 1 << 20  # bytes
_OFF: tuple[Any, ...] = (None, False, "", [], "none", "softmax")  # 0 is False


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
    typed = read_flags(options, arguments, notes)
    path = typed.pop("config", None)
    typed_here = under_names_here(typed, "command line: -")
    flags = read_place(options, typed_here, "command line", notes)

    written = read_yaml(path, layout) if path else {}
    in_file = under_names_here(written, f"{path}: ")
    for name in in_file:  # also of those that flags replace, which may be misspelt
        look_up(name, options, f"{path}: ", in_file=True)
    warning = changed_batch_size(in_file, flags)
    if warning is not None:
        notes.warnings.append(f"command line: {warning}")
    replaced = {*flags, *replaced_by(flags)}
    unreplaced = {name: value for name, value in in_file.items() if name not in replaced}
    from_file = without_rivals(read_place(options, unreplaced, str(path), notes, layout), flags)

    notes.repeated += layout.repeats
    note_renamed(typed, typed_here, notes)
    note_renamed(written, unreplaced, notes)
    given = from_file | flags
    origin = {name: "command line" if name in flags else str(path) for name in given}
    defaults = {name: option.default for name, option in options.items()}
    values = defaults | given | {"config": path}
    return Options(_without_unread(options, values, origin, notes), origin, notes)


def _without_unread(
    options: Mapping[str, Option],
    values: Mapping[str, Any],
    origin: Mapping[str, str],
    notes: Notes,
) -> dict[str, Any]:
    """Check that required options are there, and those that other options need.

    Args:
        options: those of the command.
        values: of all options.
        origin: as `Options.origin`.
        notes: receives the options that are not read.

    Returns:
        The values. Options that OpenNMT-py does not read either have their default.

    Raises:
        OptionError: names the first option that lacks, or that nothing reads.
    """
    values = dict(values)
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
    return values


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
