"""A source and a target file, read side by side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines


def read_pairs(source: Path, target: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The tokens of both files, line by line.

    Raises:
        UserError: if a file cannot be read, the files differ in length, or a source is blank.
    """
    lines = zip_longest(read_lines(source), read_lines(target))
    for number, (line, other) in enumerate(lines, 1):
        if line is None or other is None:
            fewer = "fewer" if other is None else "more"
            raise UserError(f"{target}: has {fewer} lines than {source}")
        if not line.split():
            raise UserError(f"{source}:{number}: the line is blank")
        yield line.split(), other.split()
