"""Parsers of command lines, as commands and scripts make them, and the words that they know."""

import argparse
import runpy
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from unittest import mock


class _Made(BaseException):
    """A command has made its parser, and would now parse its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _stop(parser: argparse.ArgumentParser, *_: object) -> None:
    raise _Made(parser)


def parser_of(command: Callable[[], Any]) -> argparse.ArgumentParser:
    """Run a command until it would parse its arguments; return its parser."""
    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", _stop):
        try:
            command()
        except _Made as made:
            return made.parser
    raise AssertionError("the command parses no arguments")


def parser_of_script(module: str) -> argparse.ArgumentParser:
    """Return the parser of a script, such as `tools.bench.mapping`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*found in sys.modules", RuntimeWarning)
        return parser_of(lambda: runpy.run_module(module, run_name="__main__"))


def unknown_words(parser: argparse.ArgumentParser, words: Iterable[str]) -> list[str]:
    """Return the options, subcommands and other choices among the words that a parser lacks.

    Words may lack what the parser requires, and have any value where it has no choices.
    """
    unknown = []
    choices = _choices_of_arguments(parser)
    for word in words:
        if word.startswith("-"):
            option = parser._option_string_actions.get(word)
            choices = option.choices if option else None
            if option is None:
                unknown.append(word)
        elif choices is not None and word not in choices:
            unknown.append(word)
        elif isinstance(choices, Mapping) and isinstance(choices[word], argparse.ArgumentParser):
            parser = choices[word]
            choices = _choices_of_arguments(parser)
    return unknown


def _choices_of_arguments(parser: argparse.ArgumentParser) -> Any:
    """Return the subcommands of a parser, or the choices of an argument; None if it has none."""
    arguments = (action for action in parser._actions if not action.option_strings)
    return next((action.choices for action in arguments if action.choices is not None), None)
