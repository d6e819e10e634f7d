"""Calls of `onmt-entmax export` for tests, and the texts in what they write."""

from pathlib import Path

from onmt_entmax.cli.export import main
from tests.in_process import exit_status


def export(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(main, [str(argument) for argument in arguments]) == 0


def mentions(folder: Path, text: str) -> bool:
    """Return whether a file of a model folder has a text; weights and subfolders do not count."""
    files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".safetensors"]
    assert folder / "config.yaml" in files
    return any(text.encode() in path.read_bytes() for path in files)
