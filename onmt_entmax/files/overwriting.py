"""Refuse outputs that would replace an input, a file of a model, or one another."""

from collections.abc import Iterable
from pathlib import Path

from onmt_entmax.files.paths import FileError, descriptor, followed, identity, is_stream

# Files of a model folder. The first shows that a folder is one.
_OF_MODEL = ("model.safetensors", "config.yaml", "vocab.json", "cells.tsv", "SHA256SUMS")


def refuse_overwriting(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse outputs that would replace an input or a file of a model, and `-` for stdout.

    What counts is the file on the disk, not its name: links are followed, and names that differ in
    case alone may stand for one file. A device or pipe may be both read and written. None stands
    for a file that is not used.

    Raises:
        FileError: names the file.
    """
    sources = {followed(path) for path in read if path is not None and not is_stream(path)}
    identities = {identity(path) for path in sources} - {None}
    for path in written:
        if path == Path("-"):
            raise FileError("-: the standard output is /dev/stdout here")
        if path is None or is_stream(path):
            continue
        target = followed(path)
        if target in sources or identity(target) in identities:
            raise FileError(f"{path}: is read, and would be overwritten; name another output")
        if target.name in _OF_MODEL and (target.parent / _OF_MODEL[0]).is_file():
            raise FileError(f"{path}: is a file of a model; name another output")


def refuse_one_file(output: Path | None, others: Iterable[Path | None]) -> None:
    """Refuse an output that is the same file as another output, whatever their names.

    None stands for a file that is not used.

    Raises:
        FileError: names the output.
    """
    if output is None:
        return
    if any(is_same_file(output, other) for other in others if other is not None):
        raise FileError(f"{output}: is to be written twice; name two files")


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths name one file.

    The standard output and the standard error are two files, although both may be one terminal.
    """
    numbers = descriptor(one), descriptor(other)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return followed(one) == followed(other)
