"""Find options by the names that users write, including names of other OpenNMT-py versions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from onmt_entmax.config import Option
from onmt_entmax.errors import nearest
from onmt_entmax.options.commands import names_of
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.stock import IGNORED, REFUSED, RENAMED
from onmt_entmax.options.values import EMPTY, OptionError
from onmt_entmax.rules import shown

_SHOWN = 80  # characters of an unknown name that an error shows


def find_option(
    written: str, options: Mapping[str, Option], prefix: str, *, in_file: bool = False
) -> Option | None:
    """Return the option of a name, or None if the name may be written but has no effect.

    A name has no effect if it is ignored, or, in a YAML file, if it is an option of the other of
    the commands `train` and `translate`, which may share a file.

    Args:
        written: the name, which may be of another version.
        options: options of the command.
        prefix: the beginning of the error up to the name, such as `command line: -`.
        in_file: whether the name stands in a YAML file.

    Raises:
        OptionError: if there is no such option; the message says what the user may have meant.
    """
    # A name that stands for two options has one for each side. They have the same rule.
    name = _names_here(written)[0]
    if name in options:
        return options[name]
    if written in IGNORED:
        return None
    if in_file and written not in REFUSED and _command_of(written) is not None:
        return None
    raise OptionError(f"{prefix}{written[:_SHOWN]}: no such option{_hint(written, options)}")


def _hint(unknown: str, options: Mapping[str, Option]) -> str:
    """Return the end of the error about an unknown name: what to write instead, or nothing."""
    if unknown in REFUSED:
        return f"; {REFUSED[unknown]}"
    command = _command_of(unknown)
    if command is not None:
        return f"; onmt-entmax {command} has it"
    return nearest(unknown, options)


def _command_of(name: str) -> str | None:
    """Return the command that has an option, or None."""
    if name in names_of("train"):
        return "train"
    return "translate" if name in names_of("translate") else None


def _names_here(written: str) -> tuple[str, ...]:
    """Return this package's names for a name that may be of another version."""
    return RENAMED.get(written, (written,))


class _Written(NamedTuple):
    """An option as the user wrote it: the name, and the value."""

    name: str
    value: Any


def renamed_options(content: Mapping[Any, Any], prefix: str) -> dict[str, Any]:
    """Return the options of the command line, or of a YAML file, by this package's names.

    One written name may stand for two options, one for each side. If an option is written under two
    names, and one of the values is empty, the other counts.

    Args:
        content: values by the names that the user wrote.
        prefix: the beginning of an error up to the name, such as `command line: -`.

    Raises:
        OptionError: if two names of one option have different values.
    """
    options: dict[str, _Written] = {}  # by this package's names
    for key, value in content.items():
        written = _Written(key if isinstance(key, str) else shown(key), value)
        for name in _names_here(written.name):
            before = options.get(name)
            options[name] = written if before is None else _merged(before, written, prefix)
    return {name: written.value for name, written in options.items()}


def _merged(before: _Written, written: _Written, prefix: str) -> _Written:
    """Return the one that counts of two names of an option, the later one if both are alike.

    Raises:
        OptionError: if both have a value, and these differ.
    """
    if written.value in EMPTY:
        return before
    if before.value in EMPTY or before.value == written.value:
        return written
    raise OptionError(
        f"{prefix}{written.name}: is the same option as {before.name} here, with another value; "
        "delete one"
    )


def note_renamed(written: Iterable[str], read: Mapping[str, Any], notes: Notes) -> None:
    """Note the names of other versions whose options are read under this package's names.

    Args:
        written: the names on the command line, or in a YAML file.
        read: the options of these that are read, by this package's names.
        notes: `notes.replaced` receives each such name.
    """
    for name in written:
        names = RENAMED.get(name, ())
        if not read.keys().isdisjoint(names):
            notes.replaced.append(f"{name} as {' and '.join(names)}")
