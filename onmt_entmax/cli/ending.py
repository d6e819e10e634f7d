"""How commands begin, fail and end: `train.py`, `translate.py`, and the tools."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError


def run_command(module: str, arguments: Sequence[str], program: str) -> int:
    """Run the `main` of a module of `onmt_entmax.cli`; return the exit status.

    A run that a signal ended has saved its state; its status is 128 plus the number of the signal,
    as a shell has it. See `ending` for errors.
    """
    warnings.showwarning = _one_line  # type: ignore[assignment]

    def work() -> int:
        with _ended_by_interrupts(program):
            main = import_module(f"onmt_entmax.cli.{module}").main
        # What is loaded by now stays; the garbage collector need not walk over it again.
        gc.freeze()
        return int(getattr(main, "__wrapped__", main)(arguments))

    try:
        return ending(program, work)
    finally:
        gc.unfreeze()  # else libraries report at the end what was never collected


@contextmanager
def _ended_by_interrupts(name: str) -> Iterator[None]:
    """Let an interrupt from the keyboard end the program at once, as quietly as later ones.

    For the time in which libraries are loaded, when nothing is there to be saved: some of them
    catch whatever is raised meanwhile, a KeyboardInterrupt with it, and the program would go on.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as of a shell's background commands
        yield
        return

    def end(*_: object) -> None:
        print(f"{name}: interrupted", file=sys.stderr, flush=True)
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def command(main: Callable[..., int]) -> Callable[..., int]:
    """Let the `main` of a script end as `ending` has it, under the name of its file."""
    name = Path(main.__code__.co_filename).name

    @functools.wraps(main)
    def wrapped(*arguments: Any) -> int:
        return ending(name, lambda: main(*arguments))

    return wrapped


def ending(name: str, work: Callable[[], int]) -> int:
    """The exit status of `work`, or of what stopped it.

    An error of the user's, or a disk's, or a text that cannot be written, is one line on the
    standard error and status 2; an interrupt from the keyboard is one line and status 130.
    """
    try:
        return work()
    except UserError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed yet
        return 141
    except OSError as error:  # a full disk, a file that vanished
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}: error: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except UnicodeEncodeError as error:
        print(f"{name}: error: {_unwritten(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        # OpenNMT-py takes seconds to load: only a command that has it can meet its error.
        loaded = sys.modules.get("onmt_entmax.opennmt")
        if loaded is None or not isinstance(error, loaded.SequenceTooLongError):
            raise
        print(f"{name}: error: longer than a Transformer model reads ({error})", file=sys.stderr)
        return 2


def _unwritten(error: UnicodeEncodeError) -> str:
    """What cannot be written and what to do; in ASCII, which every terminal has."""
    text, start = error.object, error.start
    # As such halves of characters Python keeps the bytes of an argument that are no text.
    if "\ud800" <= text[start] <= "\udfff":
        around = text[:start].rsplit("\n", 1)[-1][-20:] + text[start:].split("\n", 1)[0][:20]
        return (
            f"not UTF-8 text, and so not to be written: {around!a}; mend the argument, the name "
            "of the file or the input that has it"
        )
    lacks = text[start : min(error.end, start + 20)]
    return f"the output is in {error.encoding}, which has no {lacks!a}; set PYTHONIOENCODING=utf-8"


def _one_line(message: Warning | str, *_: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
