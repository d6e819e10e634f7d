"""How a command reads its arguments, fails and ends: exit statuses and one-line errors."""

import argparse
import errno
import io
import itertools
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

from onmt_entmax.errors import UserError, nearest, printable
from onmt_entmax.exhaustion import exhaustion

# The console command of this environment.
CONSOLE: tuple[str, ...] = (sys.executable, "-m", "onmt_entmax")
_DIRECTION = ("--reverse", "--reversed", "--right_to_left")  # of release 1.0
_BEGAN: ContextVar[float | None] = ContextVar("began", default=None)
_CUT = 200  # characters that a long message keeps at its beginning and at its end


class _ArgumentParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage, and that refuses empty paths."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, keep them for `error`, and warn of options that are given twice."""
        self._words = args or ()
        parsed = super().parse_known_args(args, namespace)
        warn(*(f"{name} is given twice; the last counts" for name in self._given_twice()))
        return parsed

    def _given_twice(self) -> list[str]:
        """Return the options that keep only what is given last; those that collect do not."""
        if any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            return []  # the words are also those of a subcommand, whose parser looks for itself
        words = itertools.takewhile(lambda word: word != "--", self._words)
        actions = [self._option_string_actions.get(word.partition("=")[0]) for word in words]
        stored = Counter(action for action in actions if isinstance(action, argparse._StoreAction))
        return [action.option_strings[-1] for action, count in stored.items() if count > 1]

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Return no options that a text abbreviates; `allow_abbrev` keeps those of `-model`."""
        return []

    def error(self, message: str) -> NoReturn:
        """Name the first unknown option, which argparse does only if no argument is missing."""
        options = self._option_names()
        for word in itertools.takewhile(lambda word: word != "--", self._words):
            name = word.partition("=")[0]
            if re.fullmatch(r"--?[A-Za-z]\S*", name) and name not in options:
                hint = nearest(name, sorted(options)) or "; -h explains the arguments"
                if name in _DIRECTION:
                    hint = (
                        "; the model folder says its direction, which --right_to_left of `prepare` "
                        "table and sigmorphon chooses"
                    )
                raise UserError(f"{name}: no such option{hint}")
        raise UserError(f"{message}; -h explains the arguments")

    def _option_names(self) -> set[str]:
        """Return the options of this parser and of its subcommands."""
        options = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    options |= parser._option_string_actions.keys()
        return options


def _path(text: str) -> Path:
    """Return the path of an argument; `Path` takes an empty one for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, and should name a file or folder")
    return Path(text)


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints `description`, a module's docstring, as it is written.

    Its errors are UserErrors of one line.
    """
    parser = _ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.register("type", Path, _path)
    return parser


def run_script(main: Callable[[Sequence[str]], int]) -> None:
    """Run the `main` of a script of `tools/` under the script's name, and exit."""
    sys.exit(ending(Path(sys.argv[0]).name, lambda: main(sys.argv[1:])))


def ending(program: str, work: Callable[[], int]) -> int:
    """Return the exit status of `work`, or of the error that stopped it.

    User errors, disk errors and text that cannot be encoded print one line and give status 2, an
    interrupt from the keyboard gives 130, a closed pipe gives 141 and prints nothing, and a command
    that failed gives its own status. Other errors are bugs, and keep their traceback.

    Args:
        program: the name that error messages begin with.
        work: the command.
    """
    _open_streams()
    before = _BEGAN.set(time.monotonic())
    try:
        try:
            return work()
        finally:
            _BEGAN.reset(before)
            sys.stdout.flush()  # so that errors in writing are handled here, not at exit
    except UserError as error:
        message = str(error)
    except subprocess.CalledProcessError as error:
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        message = str(error.strerror or error)
        if error.filename:
            message = f"{error.filename}: {message}"
        elif error.errno == errno.EBADF:
            message = f"the standard output is closed: {message}"
    except UnicodeEncodeError as error:
        text = error.object[error.start : error.end][:20]
        message = (
            f"{text!a} cannot be written in {error.encoding}; mend the input, or set "
            "PYTHONIOENCODING=utf-8"
        )
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        reason = exhaustion(error)
        if "can't start new thread" in str(error):  # a RuntimeError of Python's
            message = "no thread can be started; end other programs, or raise `ulimit -u`"
        elif reason is not None:
            message = f"this {reason}"
        else:
            raise
    print(f"{program}: error: {_line(message)}", file=sys.stderr)
    return 2


def command_began() -> float | None:
    """Return when the command began, by `time.monotonic`, before its libraries were imported."""
    return _BEGAN.get()


def _line(message: str, cut: int = _CUT) -> str:
    """Return a message as one line, of a long one its beginning and its end, which says what to do.

    Its tokens and names may be those of a stranger.
    """
    if len(message) > 2 * cut:
        message = f"{message[:cut]} ... {message[-cut:]}"
    return printable(message)


class _Messages(io.FileIO):
    """A file that discards what cannot be written, as after its terminal was closed."""

    def write(self, content: Any) -> int:
        """Return the length of `content`."""
        try:
            return super().write(content)
        except OSError:
            return memoryview(content).nbytes


def _open_streams() -> None:
    """Let work go on if stderr is gone, and fail in one line if it needs a closed stdin or stdout.

    Streams that a shell has closed, as by `>&-`, are None, and their numbers those of any file.
    """
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            file = os.fdopen(os.open(os.devnull, flags), "r" if name == "stdin" else "w")
            setattr(sys, name, file)
    stderr = sys.stderr
    if stderr is sys.__stderr__ and stderr is not None:  # not one that a test replaced
        messages = io.BufferedWriter(_Messages(stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(messages, stderr.encoding, stderr.errors, line_buffering=True)


def _discard_output() -> None:
    """Send pending output to nowhere if it cannot be written, else Python complains at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(*messages: str) -> None:
    """Print each warning on one line of stderr."""
    for message in messages:
        print(f"warning: {_line(message, 3 * _CUT)}", file=sys.stderr)  # may list many tokens


def note(*messages: str) -> None:
    """Print each note on one line of stderr."""
    for message in messages:
        print(f"note: {printable(message)}", file=sys.stderr)


def show_warnings_in_one_line() -> None:
    """Print each Python warning as one line, without the source code it came from."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
