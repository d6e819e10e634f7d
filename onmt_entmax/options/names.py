"""Find options by the names that users write, including names of other OpenNMT-py versions."""

from collections.abc import Iterable, Mapping
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.errors import nearest
from onmt_entmax.options.commands import names_of
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.stock import IGNORED, REFUSED, RENAMED
from onmt_entmax.options.values import EMPTY, OptionError
from onmt_entmax.rules import shown

_SHOWN = 80  # characters of an unknown name that an error shows


def find_option(
    written: str, options: Mapping[str, Option], where: str, *, in_file: bool = False
) -> Option | None:
    """Return the option of a name, or None if the name may be written without effect.

    Args:
        written: the name, which may be of another version.
        options: options of the command.
        where: beginning of the error.
        in_file: whether the name stands in a YAML file. `train` and `translate` may share a file,
            so each ignores the other's options there.

    Raises:
        OptionError: if there is no such option; the message says what the user may have meant.
    """
    name, *_ = RENAMED.get(written, (written,))
    if name in options:
        return options[name]
    if written in IGNORED:
        return None
    command = _command_of(written)
    if written in REFUSED:
        hint = f"; {REFUSED[written]}"
    elif command is not None and in_file:
        return None
    elif command is not None:
        hint = f"; onmt-entmax {command} has it"
    else:
        hint = nearest(written, options)
    raise OptionError(f"{where}{written[:_SHOWN]}: no such option{hint}")


def _command_of(name: str) -> str | None:
    """Return the command that has an option, or None."""
    if name in names_of("train"):
        return "train"
    return "translate" if name in names_of("translate") else None


def renamed_options(content: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the values of a place by the names of this package's options.

    One written name may stand for two options, one for each side. If an option is written under two
    names, and one of the values is empty, the other counts.

    Args:
        content: values by the names that the user wrote.
        where: name of the place, for errors.

    Raises:
        OptionError: if two names of one option have different values.
    """
    values: dict[str, Any] = {}
    written_names: dict[str, str] = {}  # by this package's names, for the error
    for key, value in content.items():
        written = key if isinstance(key, str) else shown(key)
        for name in RENAMED.get(written, (written,)):
            if name in values:
                before = values[name]
                if value in EMPTY:
                    continue
                if before not in EMPTY and before != value:
                    raise OptionError(
                        f"{where}{written}: is the same option as {written_names[name]} here, with "
                        "another value; delete one"
                    )
            values[name] = value
            written_names[name] = written
    return values


def note_renamed(written: Iterable[str], read: Mapping[str, Any], notes: Notes) -> None:
    """Note the names of other versions whose options are read under this package's names.

    Args:
        written: the names in a place.
        read: the options of the place that are read, by this package's names.
        notes: `notes.replaced` receives each such name.
    """
    for name in written:
        names = RENAMED.get(name, ())
        if not read.keys().isdisjoint(names):
            notes.replaced.append(f"{name} as {' and '.join(names)}")
