"""Read the flags of a command line: their names, and the words after each."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.options.given import COMMAND_LINE
from onmt_entmax.options.names import find_option
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.stock_values import BARE_FLAGS
from onmt_entmax.options.values import OptionError


def read_flags(
    options: Mapping[str, Option], arguments: Sequence[str], notes: Notes
) -> dict[str, Any]:
    """Return the words of each flag: a list, or one word, or true for a switch.

    `-name word`, `--name word` and `-name=word` are the same.

    Args:
        options: options of the command.
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
    replaced: list[tuple[str, list[str]]] = []  # flags that are given again later
    name = ""  # of the flag that words follow; empty before the first one
    for word in arguments:
        if _is_flag(word):
            name, equals, value = word.lstrip("-").partition("=")
            option = find_option(name, options, f"{COMMAND_LINE}: -")
            if name in flags:
                if option is None or option.many:
                    raise OptionError(f"{COMMAND_LINE}: -{name}: name all values after one -{name}")
                replaced.append((name, flags[name]))
            flags[name] = [value] if equals else []
        elif name:
            flags[name].append(word)
        else:
            raise OptionError(f"{COMMAND_LINE}: {word!r} does not follow an option such as -config")
    for replaced_name, words in replaced:
        _note_replaced(replaced_name, words, flags[replaced_name], notes)
    return flags


def _is_flag(word: str) -> bool:
    """Return whether a word is a flag, and not a value such as the negative number -1."""
    return re.match(r"--?[A-Za-z]", word) is not None


def _note_replaced(name: str, before: list[str], last: list[str], notes: Notes) -> None:
    """Note that a flag was given twice; warn if its words differ.

    Args:
        name: name of the flag.
        before: the words after an earlier one.
        last: the words after the last one.
        notes: receives the note or the warning.
    """
    if before == last:
        notes.repeated.append(f"-{name}")
    else:
        counted = " ".join([f"-{name}", *last])
        notes.warnings.append(f"{COMMAND_LINE}: -{name} is given twice; the last counts: {counted}")


def _flag_value(
    name: str, options: Mapping[str, Option], words: list[str], notes: Notes
) -> list[str] | str | bool:
    """Return the value of the words after a flag; see `read_flags`."""
    option = find_option(name, options, f"{COMMAND_LINE}: -")
    if option is None:
        return words
    if option.rule.kind is bool and not words:
        return True
    if name in BARE_FLAGS and not words:
        notes.replaced.append(f"-{name} without a value as -{name} {BARE_FLAGS[name]}")
        return BARE_FLAGS[name]
    if option.many:
        return words
    if len(words) != 1:
        raise OptionError(f"{COMMAND_LINE}: -{name}: expected one value, got {len(words)}")
    return words[0]
