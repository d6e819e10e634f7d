"""Names of options as people give them, some of which are those of other versions of OpenNMT-py."""

from collections.abc import Iterable, Mapping
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.errors import nearest
from onmt_entmax.options.declared import stock_names
from onmt_entmax.options.result import Notes
from onmt_entmax.options.stock import IGNORED, REFUSED, RENAMED
from onmt_entmax.options.values import OptionError
from onmt_entmax.rules import Rule, shown

_EMPTY = (None, "")  # values of keys without a value
_SHOWN = 80  # characters of an unknown name that an error shows
# Stands for an option that the command does not have, and whose value is not read.
_UNKNOWN = Option([], Rule(str))


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
    first_here, *_ = RENAMED.get(name, (name,))
    for known_name in (name, first_here):
        if known_name in options:
            return options[known_name]
    if name in IGNORED:
        return _UNKNOWN
    command = _command_of(name)
    if name in REFUSED:
        hint = f"; {REFUSED[name]}"
    elif command is not None and in_file:
        return _UNKNOWN
    elif command is not None:
        hint = f"; onmt-entmax {command} has it"
    else:
        hint = nearest(name, options)
    raise OptionError(f"{where}{name[:_SHOWN]}: no such option{hint}")


def _command_of(name: str) -> str | None:
    """Return the command for which OpenNMT-py has an option, or None."""
    if name in stock_names("train"):
        return "train"
    return "translate" if name in stock_names("translate") else None


def renamed_options(content: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the values of a place by the names of this package's options.

    One name may stand for the options of both sides. Where two names of an option are given, a
    value wins over an empty one.

    Args:
        content: values by the names that are given.
        where: names the place, for errors.

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
    """Note which names of a place are those of other versions, where their options are read.

    Args:
        names: that are given.
        read: the options of the place that are read, by their names here.
        notes: receives the names.
    """
    for name in names:
        names_here = RENAMED.get(name, ())
        if not read.keys().isdisjoint(names_here):
            notes.replaced.append(f"{name} as {' and '.join(names_here)}")
