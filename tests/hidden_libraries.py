"""Run a command of the package as if some libraries were not installed.

    python tests/hidden_libraries.py onmt,pyonmttok COMMAND ...

runs `onmt-entmax COMMAND ...` without OpenNMT-py and pyonmttok.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.commands import run


class Hiding:
    """A finder of modules, for `sys.meta_path`, that finds none of some libraries.

    Args:
        libraries: names of top-level modules.
    """

    def __init__(self, libraries: Sequence[str]) -> None:
        self.libraries = libraries

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise the error of a module that is not installed; leave others to the next finder."""
        if name.partition(".")[0] in self.libraries:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(libraries: Sequence[str]) -> None:
    """Let imports of some libraries fail in this process, which must not have imported them."""
    loaded = [library for library in libraries if library in sys.modules]
    assert not loaded, f"imported already, and Python would not look for them again: {loaded}"
    sys.meta_path.insert(0, Hiding(libraries))  # type: ignore[arg-type]


def run_without(
    libraries: str, *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the package, in a process of its own, without some libraries.

    Args:
        libraries: names of top-level modules, separated by commas.
        arguments: the command and its arguments, as `onmt-entmax` takes them.
        cwd: the working directory; this one, if None.
    """
    # The server of commands has imported OpenNMT-py, so a fork of it cannot hide it.
    fresh = "onmt" in libraries.split(",")
    return run("tests/hidden_libraries.py", libraries, *arguments, cwd=cwd, fresh=fresh)


def main() -> NoReturn:
    """Hide the libraries of the first argument, and run the command in the others."""
    hide(sys.argv.pop(1).split(","))
    from onmt_entmax.cli.main import main as command

    sys.exit(command())


if __name__ == "__main__":
    main()
