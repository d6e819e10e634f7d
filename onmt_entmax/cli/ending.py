"""How a command reads its arguments, fails and ends: exit statuses and one-line errors."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from onmt_entmax.errors import UserError, nearest, printable
from onmt_entmax.memory import exhaustion
from onmt_entmax.rules import Rule, shown


class _ArgumentParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage, and that refuses empty paths."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.register("type", Path, _path)
        self._words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, and keep them for `error`."""
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, and keep them for `error`."""
        self._words = args or ()
        return super().parse_known_intermixed_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        options = self._options()
        name, hint = self._unknown_option(options), ""
        if name is not None:
            message, hint = f"{name:.80}: no such option", nearest(name, options)
        raise UserError(message + (hint or "; -h explains the arguments"))

    def _options(self) -> list[str]:
        """Return the options, those of subparsers too."""
        parsers: list[argparse.ArgumentParser] = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
        return sorted({option for each in parsers for option in each._option_string_actions})

    def _unknown_option(self, options: Iterable[str]) -> str | None:
        """Return the first word that is read as an option and is none.

        argparse names such words only if all required arguments are there.
        """
        for word in itertools.takewhile(lambda word: word != "--", self._words):
            name = word.partition("=")[0]
            known = any(option.startswith(name) for option in options)
            if re.match(r"--?[A-Za-z]", name) and " " not in word and not known:
                return name
        return None


def _path(text: str) -> Path:
    """Return the path of an argument; `Path` takes an empty one for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, and should name a file or folder")
    return Path(text)


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints `description`, a module's docstring, as it is written.

    Its errors are UserErrors of one line.
    """
    return _ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def following(rule: Rule) -> Callable[[str], Any]:
    """Return a reader for `type=` of an argument that must follow a rule."""

    def read(text: str) -> Any:
        if text in rule.names:
            return text
        with suppress(ValueError):
            if rule.fits(value := rule.kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{rule}, not {shown(text)}")

    return read


def run_script(main: Callable[[Sequence[str]], int]) -> None:
    """Run the `main` of a script of `tools/` under the script's name, and exit."""
    sys.exit(ending(Path(sys.argv[0]).name, lambda: main(sys.argv[1:])))


def ending(program: str, work: Callable[[], int]) -> int:
    """Return the exit status of `work`, or of the error that stopped it.

    User errors, disk errors and text that cannot be encoded print one line and give status 2, an
    interrupt from the keyboard gives 130, a closed pipe gives 141 and prints nothing. Other errors
    are bugs, and keep their traceback.

    Args:
        program: the name that error messages begin with.
        work: the command.
    """
    with _lasting_messages():
        return _ending(program, work)


def _ending(program: str, work: Callable[[], int]) -> int:
    try:
        try:
            return work()
        finally:
            sys.stdout.flush()  # so that errors in writing are handled here, not at exit
    except UserError as error:
        message, status = str(error), 2
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        message, status = f"{where}{error.strerror or error}", 2
        _discard_output()
    except UnicodeEncodeError as error:
        message, status = _unencodable(error), 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        # OpenNMT-py takes seconds to load: only a command that has loaded it can raise its error.
        loaded = sys.modules.get("onmt_entmax.opennmt")
        if loaded is not None and isinstance(error, loaded.SequenceTooLongError):
            message, status = f"longer than a Transformer model reads ({error})", 2
        elif (reason := exhaustion(error)) is not None:
            message, status = f"this does not fit in memory ({reason})", 2
        else:
            raise
    print(f"{program}: error: {printable(message)}", file=sys.stderr)
    return status


class _Messages(io.FileIO):
    """A file that takes everything, and discards what cannot be written."""

    def write(self, content: Any) -> int:
        """Return the length of `content`."""
        try:
            return super().write(content)
        except OSError:
            return memoryview(content).nbytes


@contextmanager
def _lasting_messages() -> Iterator[None]:
    """Discard messages if stderr is gone, as after its terminal was closed: work goes on or ends,
    and is saved, whether or not it can be told."""
    before: TextIO = sys.stderr
    if sys.__stderr__ is None or before is not sys.__stderr__:  # not there, or replaced already
        yield
        return
    messages = _Messages(before.fileno(), "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(messages), before.encoding, before.errors, line_buffering=True
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def _discard_output() -> None:
    """Send pending output to nowhere if it cannot be written, else Python complains at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def interruptible_imports(program: str) -> Iterator[None]:
    """End the process at once on an interrupt from the keyboard, with one line and status 130.

    For the seconds in which libraries are imported: some of them catch every exception meanwhile,
    a KeyboardInterrupt too, and the program would go on.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as in a shell's background commands
        yield
        return

    def end(*_: object) -> None:
        print(f"{program}: interrupted", file=sys.stderr, flush=True)
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def warn(*messages: str) -> None:
    """Print each warning on one line of stderr."""
    for message in messages:
        print(f"warning: {printable(message)}", file=sys.stderr)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print each Python warning as one line, without the source code it came from."""

    def show(message: Warning | str, *_: object) -> None:
        warn(str(message))

    before, warnings.showwarning = warnings.showwarning, show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = before


def _unencodable(error: UnicodeEncodeError) -> str:
    """Say which text cannot be written and what to do; in ASCII, which every terminal shows."""
    text, start = error.object, error.start
    # Python keeps undecodable bytes of an argument as lone surrogates.
    if "\ud800" <= text[start] <= "\udfff":
        around = text[:start].rsplit("\n", 1)[-1][-20:] + text[start:].split("\n", 1)[0][:20]
        return (
            f"not UTF-8 text, and so not to be written: {around!a}; mend the argument, the name "
            "of the file or the input that has it"
        )
    lacks = text[start : min(error.end, start + 20)]
    return f"the output is in {error.encoding}, which has no {lacks!a}; set PYTHONIOENCODING=utf-8"
