"""Run the `main` of a command in this process."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from onmt_entmax.cli.ending import ending

Main = Callable[[Sequence[str]], int]


def name_of(main: Main) -> str:
    """Return the name of the command's file, with which its messages begin."""
    return Path(main.__code__.co_filename).name


def exit_status(main: Main, arguments: Sequence[str]) -> int:
    """Run a command and return its exit status; its messages begin with its file's name."""
    with mock.patch("sys.argv", [name_of(main)]):
        return ending(name_of(main), lambda: main(arguments))


def success(main: Main, arguments: Iterable[object]) -> str:
    """Run a command that must succeed; return all that it printed, warnings included.

    A warning must be printed as the command's own line, without the class that Python's warnings
    show, such as `UserWarning`.
    """
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
        status = exit_status(main, [str(argument) for argument in arguments])
    assert status == 0, printed.getvalue()
    assert "Warning" not in printed.getvalue()
    return printed.getvalue()


def refusal(main: Main, arguments: Iterable[object], progress: bool = False) -> str:
    """Run a command that must refuse its arguments; return the line that it prints as an error.

    Args:
        main: the function of the command.
        arguments: arguments of the command.
        progress: whether other lines may come first, such as the progress of a training.
    """
    with redirect_stderr(io.StringIO()) as printed:
        assert exit_status(main, [str(argument) for argument in arguments]) == 2
    *before, line = printed.getvalue().splitlines()
    assert progress or not before
    assert line.startswith(f"{name_of(main)}: error: ")
    return line
