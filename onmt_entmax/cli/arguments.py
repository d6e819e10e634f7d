"""The parser of command lines: one-line errors, no abbreviations, warnings of repeated options."""

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError, nearest

_OPTION = re.compile(r"--?[A-Za-z]\S*")
# Options of release 1.0 that no longer exist, and what to do instead.
_GONE = dict.fromkeys(
    ("--reverse", "--reversed", "--right_to_left"),
    "; the model folder says its direction, which --right_to_left of `prepare` table and "
    "sigmorphon chooses",
)
_HELP = "; -h explains the arguments"


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints `description`, a module's docstring, as it is written.

    Its errors are UserErrors of one line. Paths must not be empty.
    """
    return _ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def _path(text: str) -> Path:
    """Return the path of an argument; `Path` takes an empty one for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, and should name a file or folder")
    return Path(text)


class _ArgumentParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage.

    argparse has no public way to list options, or to switch off abbreviations of `-model`. The
    private names of argparse that stand here are the same in Python 3.10 to 3.14, and the tests run
    with all of these versions.
    """

    _words: Sequence[str] = ()  # the arguments, which argparse does not give to `error`

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.register("type", Path, _path)  # here, since subcommands make parsers of this class

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, and warn of options that are given twice."""
        self._words = args or ()
        parsed = super().parse_known_args(args, namespace)
        warn(*(f"{name} is given twice; the last counts" for name in self._given_twice()))
        return parsed

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Return no options: none may be abbreviated. `allow_abbrev` would still allow `-mod`."""
        return []

    def error(self, message: str) -> NoReturn:
        """Raise an error about the first unknown option, or else with the message.

        argparse names unknown options only if no argument is missing.

        Raises:
            UserError: always.
        """
        options = self._option_names()
        for name in self._option_like_words():
            if _OPTION.fullmatch(name) and name not in options:
                hint = _GONE.get(name) or nearest(name, sorted(options)) or _HELP
                raise UserError(f"{name}: no such option{hint}")
        raise UserError(f"{message}{_HELP}")

    def _option_like_words(self) -> Iterator[str]:
        """Yield the arguments up to `--`, without the values that `=` joins to them."""
        for word in itertools.takewhile(lambda word: word != "--", self._words):
            yield word.partition("=")[0]

    def _given_twice(self) -> list[str]:
        """Return the options that were given several times, if only their last value counts."""
        if self._subparsers_actions():
            return []  # the parser of the subcommand warns of its own words
        actions = [self._option_string_actions.get(word) for word in self._option_like_words()]
        stored = Counter(action for action in actions if isinstance(action, argparse._StoreAction))
        return [action.option_strings[-1] for action, count in stored.items() if count > 1]

    def _option_names(self) -> set[str]:
        """Return the options of this parser and of its subcommands."""
        options = set(self._option_string_actions)
        for action in self._subparsers_actions():
            for parser in action.choices.values():
                options |= parser._option_string_actions.keys()
        return options

    def _subparsers_actions(self) -> list[Any]:
        """Return the arguments that choose a subcommand."""
        return [
            action for action in self._actions if isinstance(action, argparse._SubParsersAction)
        ]
