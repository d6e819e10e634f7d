"""Write text files whole or not at all: after a failure, the old ones are still there.

A file is written under a temporary name beside its own, flushed to disk, and renamed at the end.
`folders.py` does the same for folders.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from onmt_entmax.files.paths import FileError, descriptor, is_stream, naming
from onmt_entmax.files.signals import ended_by_exception
from onmt_entmax.files.temporary import flush, remove, temporary_beside


def _open_stream(path: Path) -> TextIO:
    """Open a device, a pipe or an open file for writing.

    Raises:
        FileError: if the path is a disk, which writing would destroy.
    """
    if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode):
        raise FileError(f"{path}: is a disk, not a file to write")
    number = descriptor(path)
    if number is None:
        return open(path, "a", encoding="utf-8", newline="\n")
    # By its number, since Windows has no such names for its standard streams. The number is copied,
    # since a file that is opened by name has a position of its own and would overwrite its start.
    sys.stdout.flush()
    return open(os.dup(number), "w", encoding="utf-8", newline="\n")


@contextmanager
def replaced_when_done(paths: Sequence[Path]) -> Iterator[list[TextIO]]:
    """Open text files that get their names only if the block ends without an error.

    After an error or a kill, each file is either unchanged or complete. Missing folders are
    created. Links are followed. Devices and pipes, such as `/dev/stdout`, are written directly.

    Raises:
        FileError: a file cannot be written, or two are the same; if possible, before the block
            starts.
    """
    # At the end, the stack closes all files, and removes those that still have temporary names.
    with ExitStack() as stack:
        stack.enter_context(ended_by_exception())
        files: list[TextIO] = []
        targets: dict[TextIO, Path] = {}  # what temporary files replace; streams replace nothing
        for path in paths:
            with naming(path):
                if is_stream(path):
                    file = _open_stream(path)
                else:
                    target, temporary = temporary_beside(path, folder=False)
                    if target in targets.values():
                        raise FileError(f"{path}: is to be written twice; name two files")
                    stack.callback(remove, temporary)
                    file = _open_temporary(temporary, target)
                    targets[file] = target
            files.append(file)
            stack.callback(_discard, file)
        try:
            yield files
            for file in files:
                _close(file, flushed=file in targets)
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is not None:
                raise  # the error is about another file, which it names
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror or error})") from None
        for file, target in targets.items():
            with naming(target):
                os.replace(file.name, target)
                flush(target.parent)


@contextmanager
def replaced_with_optional(
    required: Sequence[Path], optional: Sequence[Path | None]
) -> Iterator[tuple[list[TextIO], list[TextIO | None]]]:
    """Open required and optional text files together, as `replaced_when_done` does.

    Yields:
        The required files, and the optional ones with None for each path that is None.
    """
    named = [path for path in optional if path is not None]
    with replaced_when_done([*required, *named]) as files:
        others = iter(files[len(required) :])
        yield (
            files[: len(required)],
            [None if path is None else next(others) for path in optional],
        )


def _open_temporary(temporary: Path, target: Path) -> TextIO:
    """Create a temporary file, with the permissions of what it will replace."""
    # Not `tempfile`, whose files only their owner can read.
    file = open(temporary, "x", encoding="utf-8", newline="\n")  # noqa: SIM115
    if target.exists():
        shutil.copymode(target, temporary)
    return file


def _close(file: TextIO, *, flushed: bool) -> None:
    """Close a file that was open for writing.

    Args:
        file: the file.
        flushed: whether to flush it to disk first, so that its content survives a power cut;
            streams cannot be flushed.
    """
    file.flush()
    if flushed:
        os.fsync(file.fileno())
    file.close()


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files: see `replaced_when_done`.

    Raises:
        FileError: if a folder or file cannot be written. No file was changed then, unless one of
            the renames at the end failed.
    """
    with replaced_when_done(list(contents)) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.buffer.write(content.encode() if isinstance(content, str) else content)


def write_text(path: Path, text: str) -> None:
    """Write a text file: see `replaced_when_done`."""
    write_files({path: text})


def _discard(file: TextIO) -> None:
    """Close a file; unwritten data is discarded."""
    with suppress(OSError):
        file.close()
