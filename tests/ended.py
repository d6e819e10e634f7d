"""Running the `main` of a command in this process."""

from collections.abc import Callable, Sequence
from pathlib import Path

from onmt_entmax.cli.ending import ending


def ended(main: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Return the exit status; error messages begin with the name of the command's file."""
    return ending(Path(main.__code__.co_filename).name, lambda: main(arguments))
