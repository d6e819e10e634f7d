"""Strict reading of options: unknown keys and flags, and values of a wrong type, are errors.

OpenNMT-py's parsers define the names, types and defaults. They silently drop a misspelt key, so
the values are read here.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.opennmt import ArgumentParser, train_opts, translate_opts
from onmt_entmax.options.rivals import without_rivals
from onmt_entmax.parsing import ParseError, parse_yaml
from onmt_entmax.rules import shown

_LARGEST_FILE = 1 << 22  # bytes
_LONGEST_MESSAGE = 400  # characters; a value may have millions

# Hints for options of other versions and commands.
_ELSEWHERE = {
    "hidden_size": "OpenNMT-py 2.3.0 calls it rnn_size",
    "base": "a matrix has it: python -m tools.papers.tables run FILE",
    **dict.fromkeys(
        ("dump_samples", "num_threads", "vocab_sample_queue_size"),
        "only onmt_build_vocab has it",
    ),
}

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class OptionError(UserError):
    """A configuration that cannot be used; one line names the file or flag, the key and the fix."""


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    Attributes:
        values: by OpenNMT-py's names.
        origin: the source of each given value: the name of a file, or "command line".
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Whether the user set the option."""
        return name in self.origin

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        cut = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."
        return OptionError(f"{self.origin.get(name, 'default')}: {name}: {cut}")

    def no_file(self, name: str, path: str, part: str = "") -> OptionError:
        """Return the error for a file that is not there, named by a part of option `name`."""
        return self.error(name, f"{part}{no_such_file(path, self.values.get('config'))}")


def no_such_file(path: str | Path, configuration: str | Path | None = None) -> str:
    """Return a message that says why a path is not a file, and what to name instead.

    Args:
        path: of the file, relative to the current folder.
        configuration: the file that names it, from whose folders it may have been meant.
    """
    if os.path.isdir(path):
        return f"{path} is a folder; name a file"
    if os.path.exists(path):
        return f"{path} is a pipe or a device, but is read more than once; name a file"
    if os.path.isabs(path):
        return f"no such file: {path}"
    searched = f"no such file: {path} (searched in {Path.cwd()})"
    for folder in Path(os.path.abspath(configuration)).parents if configuration else ():
        if (folder / path).is_file():
            return f"{searched}; did you mean to run from {folder}?"
    return searched


def register(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a parser by each of their names, without dashes."""
    return {
        text.lstrip("-"): action
        for action in parser._actions
        for text in action.option_strings
        if not isinstance(action, argparse._HelpAction)
    }


def canonical(action: argparse.Action) -> str:
    """Return the name of an option: its longest flag, without dashes."""
    return max((text.lstrip("-") for text in action.option_strings), key=len)


def read_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Options:
    """Read `-config FILE` and the flags; a flag wins over the file, and over its rivals there.

    Args:
        parser: defines the options.
        arguments: the command line, without the program's name.

    Raises:
        OptionError: names the first option that is wrong.
    """
    known = register(parser)
    flags = _split_flags(arguments, known)
    defaults = {canonical(a): a.default for a in known.values() if a.default != argparse.SUPPRESS}
    path, file = None, {}
    if "config" in flags:
        path = defaults["config"] = _from_flag(flags.pop("config"), known["config"])
        for key, value in read_yaml(path).items():
            action = _look_up(key if isinstance(key, str) else shown(key), known, path)
            file[canonical(action)] = _convert(value, action, f"{path}: {key}")
    given = {
        name: _convert(_from_flag(texts, known[name]), known[name], f"-{name}")
        for name, texts in flags.items()
    }
    try:
        file = without_rivals(file, given)
    except UserError as error:
        raise OptionError(f"command line: {error}") from None
    values = {**defaults, **file, **given}
    origin = {**dict.fromkeys(file, str(path)), **dict.fromkeys(given, "command line")}
    for name, action in known.items():
        if action.required and canonical(action) == name and not origin.get(name):
            hint = "" if path else f"; give -{name}, or -config FILE with it"
            raise OptionError(f"{path or 'command line'}: {name}: this option is required{hint}")
    return Options(values, origin)


def read_recorded(
    parser: argparse.ArgumentParser, recorded: Mapping[str, Any], where: str
) -> Options:
    """Read options that a file records among others, as those of a YAML file.

    Args:
        parser: defines the options; those that are not recorded have its defaults.
        recorded: values by name.
        where: names the file in errors.

    Raises:
        OptionError: names the first option that is wrong.
    """
    known = {canonical(action): action for action in register(parser).values()}
    values = {name: action.default for name, action in known.items()}
    for name in known.keys() & recorded.keys():
        values[name] = _convert(recorded[name], known[name], f"{where}: {name}")
    return Options(values, dict.fromkeys(known.keys() & recorded.keys(), where))


def read_yaml(path: str) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises:
        OptionError: the file cannot be read, is too large, empty or not YAML, or has a key twice.
    """
    if "\0" in path:
        raise OptionError(f"{path!a}: a null byte, which no file name has")
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise OptionError(f"{path}: larger than {_LARGEST_FILE:,} bytes")
        content = parse_yaml(text.decode("utf-8"))
    except OSError as error:
        absent = isinstance(error, FileNotFoundError) and not os.path.isabs(path)
        searched = f" (searched in {Path.cwd()})" if absent else ""
        raise OptionError(f"{path}: {error.strerror}{searched}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path}: not valid UTF-8") from None
    except ParseError as error:
        raise OptionError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise OptionError(f"{path}: expected `key: value` lines")
    return content


def _split_flags(
    arguments: Sequence[str], known: Mapping[str, argparse.Action]
) -> dict[str, list[str]]:
    """Return the words that follow each flag."""
    flags: dict[str, list[str]] = {}
    current: list[str] | None = None
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            action = _look_up(name, known, "command line", prefix="-")
            current = flags.setdefault(canonical(action), [])
            current[:] = [value] if equals else []
        elif current is None:
            raise OptionError(f"command line: {word!r} does not follow an option such as -config")
        else:
            current.append(word)
    return flags


def _look_up(
    name: str, known: Mapping[str, argparse.Action], where: str, prefix: str = ""
) -> argparse.Action:
    if name not in known:
        hint = _elsewhere(name)
        hint = f"; {hint}" if hint else nearest(name, known)
        raise OptionError(f"{where}: {prefix}{name:.80}: no such option{hint}")
    return known[name]


def _elsewhere(name: str) -> str:
    """Return which other version or command has an option; an empty string if none has."""
    # OpenNMT-py's options alone: the modules of ours import this one.
    of_translate = partial(translate_opts, dynamic=True)
    for command, add_options in (("train", train_opts), ("translate", of_translate)):
        parser = ArgumentParser()
        add_options(parser)
        if name in register(parser):
            return f"onmt-entmax {command} has it"
    return _ELSEWHERE.get(name, "")


def _from_flag(texts: list[str], action: argparse.Action) -> Any:
    """Return the words after a flag as YAML would read them."""
    if action.nargs in ("+", "*"):
        return texts
    if action.nargs == 0 and not texts:
        return True
    if len(texts) != 1:
        flag = canonical(action)
        raise OptionError(f"command line: -{flag}: expected one value, got {len(texts)}")
    return texts[0]


def _convert(value: Any, action: argparse.Action, where: str) -> Any:
    """Convert `value` to the type of the option and check it against the choices."""
    if type(action).__name__ == "DeprecateAction":
        raise OptionError(f"{where}: deprecated in OpenNMT-py 2.3.0. {action.help or ''}".strip())
    if action.nargs == 0:
        return _boolean(value, where)
    if action.nargs in ("+", "*"):
        values = value if isinstance(value, list) else [value]
        if action.nargs == "+" and not values:
            raise OptionError(f"{where}: expected at least one value")
        return [_scalar(single, action, where) for single in values]
    return _scalar(value, action, where)


def _boolean(value: Any, where: str) -> bool:
    text = value.lower() if isinstance(value, str) else shown(value).lower()
    if text not in _TRUE + _FALSE:
        raise OptionError(f"{where}: expected true or false, not {shown(value)}")
    return text in _TRUE


def _scalar(value: Any, action: argparse.Action, where: str) -> Any:
    if canonical(action) == "data":  # a mapping, checked later
        try:
            return parse_yaml(value) if isinstance(value, str) else value
        except ParseError as error:
            raise OptionError(f"{where}: {error}") from None
    kind = action.type if callable(action.type) else str
    if value is None and action.default in (None, ""):
        return action.default
    if isinstance(value, bool) and {"on", "off"} <= set(action.choices or ()):
        value = "on" if value else "off"  # as YAML 1.1 reads these words
    result: Any
    try:
        if kind is int and (isinstance(value, bool) or float(value) != int(float(value))):
            raise ValueError
        if kind is float and isinstance(value, bool):
            raise ValueError
        if isinstance(value, (dict, list)) or value is None:
            raise ValueError
        whole = kind is int and re.fullmatch(r"[-+]?\d+", str(value)) is None  # such as 1e5
        result = int(float(value)) if whole else kind(value)
    except (TypeError, ValueError, OverflowError):
        names: dict[Any, str] = {int: "a whole number", float: "a number", str: "a word or path"}
        expected = names.get(kind, "another kind of value")
        raise OptionError(f"{where}: expected {expected}, not {shown(value)}") from None
    if action.choices is not None and result not in action.choices:
        choices = [str(choice) for choice in action.choices]
        raise OptionError(
            f"{where}: {shown(result)} is not one of {', '.join(choices)}"
            f"{nearest(str(result), choices)}"
        )
    if "\0" in str(result):
        raise OptionError(f"{where}: {shown(result)} has a null character")
    return result
