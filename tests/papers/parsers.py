"""Find words of a command line, such as a misspelt option, that the parser of a command lacks."""

import argparse
import math
import runpy
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from unittest import mock


class _ParserMade(BaseException):
    """Stops a command that has made its parser and would now parse its arguments.

    It is no `Exception`, so that commands which catch every exception let it through.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _stop(parser: argparse.ArgumentParser, *_: object) -> None:
    raise _ParserMade(parser)


def parser_of(command: Callable[[], Any]) -> argparse.ArgumentParser:
    """Run a command until it would parse its arguments; return its parser."""
    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", _stop):
        try:
            command()
        except _ParserMade as made:
            return made.parser
    raise AssertionError("the command parses no arguments")


def parser_of_script(module: str) -> argparse.ArgumentParser:
    """Return the parser of a script, such as `tools.bench.mapping`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*found in sys.modules", RuntimeWarning)
        return parser_of(lambda: runpy.run_module(module, run_name="__main__"))


def unknown_words(
    parser: argparse.ArgumentParser,
    words: Iterable[str],
    further_options: Mapping[str, argparse.Action] = MappingProxyType({}),
) -> list[str]:
    """Return the words that are no option, subcommand or choice of a parser.

    Required arguments may be missing, and where the parser has no choices, any value will do. A
    value follows its option, or stands behind `=`. A word that belongs to no option is compared
    with the parser's subcommands, or with the choices of its first argument that has some.

    Args:
        parser: the parser of a command.
        words: the command line after the command's name.
        further_options: options that the command passes on to another command, by name.
    """
    unknown = []
    option: argparse.Action | None = None
    values_left = 0.0  # how many more words may be values of the option
    choices = _choices_of_arguments(parser)
    for word in words:
        if word.startswith("-"):
            name, has_value, value = word.partition("=")
            option = {**further_options, **parser._option_string_actions}.get(name)
            if option is None or (has_value and not _may_have(option, value)):
                unknown.append(word)
            values_left = 0 if option is None or has_value else _most_values(option)
        elif option is not None and values_left:
            values_left -= 1
            if not _may_have(option, word):
                unknown.append(word)
        elif choices is not None and word not in choices:
            unknown.append(word)
        elif isinstance(choices, Mapping) and isinstance(choices[word], argparse.ArgumentParser):
            parser = choices[word]
            choices = _choices_of_arguments(parser)
    return unknown


def _most_values(option: argparse.Action) -> float:
    """Return how many values an option takes at most."""
    if isinstance(option.nargs, int):
        return option.nargs
    return 1 if option.nargs in (None, "?") else math.inf


def _may_have(option: argparse.Action, value: str) -> bool:
    """Return whether an option takes values, and this is one of its choices, if it has any."""
    return _most_values(option) > 0 and (option.choices is None or value in option.choices)


def _choices_of_arguments(parser: argparse.ArgumentParser) -> Any:
    """Return the subcommands of a parser, or the choices of an argument; None if it has none."""
    arguments = (action for action in parser._actions if not action.option_strings)
    return next((action.choices for action in arguments if action.choices is not None), None)
