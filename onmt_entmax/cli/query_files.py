"""The files of `predict`: where each table of queries is read, and where its predictions go."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.streams import STDIN, STDIN_NAME
from onmt_entmax.errors import UserError
from onmt_entmax.files import is_stream, read_lines
from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.guessing import SAMPLE


@dataclass(frozen=True)
class TableFile:
    """A table of queries, which has not been read yet.

    Attributes:
        path: file to read; for the standard input, a copy of it.
        name: its name in messages.
        output: file to write, with the predictions; None: the standard output.
    """

    path: Path
    name: str
    output: Path | None


def table_files(paths: Sequence[Path], output: Path | None, stdin_copy: Path) -> list[TableFile]:
    """Return the tables, each with its output.

    Tables are read twice, first to check all rows. The standard input is therefore copied.

    Args:
        paths: paths of the tables; `-` is the standard input.
        output: file or folder to write; several tables need a folder.
        stdin_copy: file for the copy of the standard input.

    Raises:
        UserError: there are several tables and no folder, two of them would be written to one
            file, or one cannot be read twice.
    """
    if output is None and len(paths) > 1:
        raise UserError("several tables need --output, a folder")
    folder = _folder(len(paths), output)
    if STDIN in paths:
        _copy_stdin(stdin_copy)
    if folder is None:
        return [_table_file(path, stdin_copy, output) for path in paths]
    names = [_stdin_output(stdin_copy) if path == STDIN else path.name for path in paths]
    _refuse_equal_names(paths, names, folder)
    return [
        _table_file(path, stdin_copy, folder / name)
        for path, name in zip(paths, names, strict=True)
    ]


def _folder(tables: int, output: Path | None) -> Path | None:
    """Return the folder that the tables go into; None if `output` is the file of a single table.

    Raises:
        UserError: there are several tables, and `output` is a file.
    """
    if output is None or (tables == 1 and not output.is_dir()):
        return None
    if output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: is a file, and several tables need a folder")
    return output


def _copy_stdin(stdin_copy: Path) -> None:
    """Copy the standard input to a file."""
    with open(stdin_copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)


def _stdin_output(stdin_copy: Path) -> str:
    """Return the name of the standard input's output in a folder, which says what divides it."""
    sample = [line for line in islice(read_lines(stdin_copy, STDIN_NAME), SAMPLE) if line.strip()]
    return "stdin.tsv" if not sample or guess_delimiter(sample) == "\t" else "stdin.csv"


def _refuse_equal_names(paths: Sequence[Path], names: Sequence[str], folder: Path) -> None:
    """Refuse tables that would be written to one file of a folder.

    Raises:
        UserError: names the first such tables.
    """
    by_name: dict[str, list[str]] = {}
    for path, name in zip(paths, names, strict=True):
        by_name.setdefault(name, []).append(str(path))
    for name, equal in by_name.items():
        if len(equal) > 1:
            raise UserError(
                f"{' and '.join(equal)} would both be written to {folder}/{name}; predict them "
                "apart, into different folders"
            )


def _table_file(path: Path, stdin_copy: Path, output: Path | None) -> TableFile:
    """Return one table with its output.

    Raises:
        UserError: it cannot be read twice.
    """
    if path == STDIN:
        return TableFile(stdin_copy, STDIN_NAME, output)
    if is_stream(path):
        raise UserError(f"{path}: is a pipe or a device, but is read more than once; give -")
    return TableFile(path, str(path), output)
