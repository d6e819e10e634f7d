"""Running the `main` of a command in this process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from onmt_entmax.cli.ending import ending


def ended(main: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Return the exit status; messages begin with the name of the command's file."""
    program = Path(main.__code__.co_filename).name
    with mock.patch("sys.argv", [program]):
        return ending(program, lambda: main(arguments))
