"""The tables that `predict` reads, and the files to which it writes their predictions."""

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
    """A table of queries that is not read yet.

    Attributes:
        path: file to read; for the standard input, a copy of it.
        name: the table's name in messages.
        output: file for the predictions; None: the standard output.
    """

    path: Path
    name: str
    output: Path | None


def table_files(paths: Sequence[Path], output: Path | None, stdin_copy: Path) -> list[TableFile]:
    """Return the tables, each with its output.

    Every table is read twice, since all rows are checked before the first one is predicted. So the
    standard input is copied.

    Args:
        paths: paths of the tables; `-` is the standard input.
        output: file or folder to write; several tables need a folder.
        stdin_copy: file for the copy of the standard input.

    Raises:
        UserError: there are several tables and no folder, two tables would be written to the same
            file, or a table cannot be read twice.
    """
    folder = _folder(output, len(paths))
    if STDIN in paths:
        with open(stdin_copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    outputs = [output] if folder is None else _files_in(folder, paths, stdin_copy)
    return [_table_file(path, stdin_copy, file) for path, file in zip(paths, outputs, strict=True)]


def _folder(output: Path | None, tables: int) -> Path | None:
    """Return the folder for the outputs; None if the only table has a file or the standard output.

    Args:
        output: value of `--output`, if the user gave one.
        tables: number of tables.

    Raises:
        UserError: there are several tables, and `output` is missing or a file.
    """
    if tables == 1:
        return output if output is not None and output.is_dir() else None
    if output is None:
        raise UserError("several tables need --output, a folder")
    if output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: is a file, and several tables need a folder")
    return output


def _files_in(folder: Path, paths: Sequence[Path], stdin_copy: Path) -> list[Path]:
    """Return the file of each table in the folder for the outputs.

    Raises:
        UserError: two tables would be written to the same file.
    """
    names = [_stdin_output(stdin_copy) if path == STDIN else path.name for path in paths]
    tables_by_name: dict[str, list[str]] = {}
    for path, name in zip(paths, names, strict=True):
        tables_by_name.setdefault(name, []).append(str(path))
    for name, tables in tables_by_name.items():
        if len(tables) > 1:
            raise UserError(
                f"{' and '.join(tables)} would both be written to {folder}/{name}; predict them "
                "apart, into different folders"
            )
    return [folder / name for name in names]


def _stdin_output(stdin_copy: Path) -> str:
    """Return the file name for the predictions of the standard input, with its format as ending."""
    sample = [line for line in islice(read_lines(stdin_copy, STDIN_NAME), SAMPLE) if line.strip()]
    return "stdin.tsv" if not sample or guess_delimiter(sample) == "\t" else "stdin.csv"


def _table_file(path: Path, stdin_copy: Path, output: Path | None) -> TableFile:
    """Return a table with its output.

    Raises:
        UserError: it cannot be read twice.
    """
    if path == STDIN:
        return TableFile(stdin_copy, STDIN_NAME, output)
    if is_stream(path):
        raise UserError(f"{path}: is a pipe or a device, but is read more than once; give -")
    return TableFile(path, str(path), output)
