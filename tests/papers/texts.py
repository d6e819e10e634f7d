"""Parallel text for the tests of commands that read a source and a target file."""

from collections.abc import Sequence
from pathlib import Path


def write_texts(folder: Path, sources: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Write the lines of both sides; return the options that name the files."""
    options = []
    for side, lines in (("source", sources), ("target", targets)):
        path = folder / f"{side}.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        options += [f"--{side}", str(path)]
    return options
