"""Run the package in a process where some libraries are not installed.

python tests/hidden.py onmt,pyonmttok COMMAND ...     as `onmt-entmax COMMAND ...`
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.commands import run


class Hiding:
    """A finder of modules that refuses those of some libraries; it comes before all others."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self.libraries = libraries

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise Python's error for a module that is not installed."""
        if name.partition(".")[0] in self.libraries:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(libraries: Sequence[str]) -> None:
    """Let imports of some libraries fail in this process, which must not have loaded them."""
    loaded = [library for library in libraries if library in sys.modules]
    assert not loaded, f"loaded already, and Python does not look for them again: {loaded}"
    sys.meta_path.insert(0, Hiding(libraries))  # type: ignore[arg-type]


def without(
    libraries: str, *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the package without some libraries.

    Args:
        libraries: their names, separated by commas.
        arguments: the command and its arguments, as `onmt-entmax` has them.
        cwd: folder in which it runs.
    """
    # The server of commands has loaded OpenNMT-py, and its forks could not hide it.
    fresh = "onmt" in libraries.split(",")
    return run("tests/hidden.py", libraries, *arguments, cwd=cwd, fresh=fresh)


def main() -> NoReturn:
    """Hide the libraries of the first argument, and run the command in the others."""
    hide(sys.argv.pop(1).split(","))
    from onmt_entmax.cli.main import main as command

    sys.exit(command())


if __name__ == "__main__":
    main()
