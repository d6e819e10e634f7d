"""Calls of `onmt-entmax export` for tests, and what they write."""

from pathlib import Path

from onmt_entmax.cli.export import main
from tests.in_process import exit_status


def export(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(main, [str(argument) for argument in arguments]) == 0


def texts(folder: Path) -> bytes:
    """Return the content of all files of a folder, but for the weights."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".safetensors"]
    return b"\n".join(path.read_bytes() for path in files)
