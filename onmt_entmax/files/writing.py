"""Writing that leaves either the old file or folder, or the whole new one."""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from onmt_entmax.files.paths import OPEN_FILE, FileError, followed, identity, is_stream, naming
from onmt_entmax.files.signals import ended_by_exception

# Files of a model folder; no other folder has the first.
_OF_MODEL = ("model.safetensors", "config.yaml", "vocab.json", "cells.tsv", "SHA256SUMS")


def make_parent(path: Path) -> None:
    """Create the folder in which a file is to be written; links are followed.

    Raises:
        FileError: it cannot be created, as where a file has its name.
    """
    with naming(path):
        try:
            followed(path).parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            files = (each for each in path.parents if os.path.exists(each) and not each.is_dir())
            raise FileError(
                f"{path}: cannot be written, since {next(files, path.parent)} is a file, not a "
                "folder; name another folder"
            ) from None


def _temporary(path: Path, *, folder: bool = False) -> tuple[Path, Path]:
    """Return where links lead, and a new name beside it; `folder`: whether to write a folder.

    Raises:
        FileError: what is there is of another kind, or must not be written.
    """
    target = followed(path)
    make_parent(path)
    with naming(path):
        if target.exists():
            if target.is_dir() != folder:
                raise FileError(f"{path}: is a {'file' if folder else 'folder'} already")
            if not os.access(target, os.W_OK):  # a rename would not mind
                raise FileError(f"{path}: cannot be written (Permission denied)")
    # A file name has at most 255 bytes.
    return target, target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")


def _open_stream(path: Path) -> TextIO:
    """Open a device, a pipe or an open file for writing."""
    own = OPEN_FILE.fullmatch(path.as_posix())
    # Windows has standard streams, too, but no such names.
    if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode):
        raise FileError(f"{path}: is a disk, not a file to write")
    if not own:
        return open(path, "a", encoding="utf-8", newline="\n")
    # Opened anew, a regular file would have a position of its own.
    sys.stdout.flush()
    number = ("stdin", "stdout", "stderr").index(own[1]) if own[1] else int(own[2])
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
    with ExitStack() as stack:
        stack.enter_context(ended_by_exception())
        files: list[TextIO] = []
        renamed: dict[Path, TextIO] = {}  # by target
        for path in paths:
            with naming(path):
                if is_stream(path):
                    file = _open_stream(path)
                else:
                    target, temporary = _temporary(path)
                    if target in renamed:
                        raise FileError(f"{path}: is to be written twice; name two files")
                    stack.callback(remove, temporary)
                    file = renamed[target] = _open_temporary(temporary, target)
            files.append(file)
            stack.callback(_discard, file)
        try:
            yield files
            for file in files:
                _close(file, flushed=file in renamed.values())
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is not None:
                raise  # of another file
            names = " or ".join(map(str, paths))
            raise FileError(f"{names}: cannot be written ({error.strerror or error})") from None
        for target, file in renamed.items():
            with naming(target):
                os.replace(file.name, target)
                _flush(target.parent)


def _open_temporary(temporary: Path, target: Path) -> TextIO:
    """Create a temporary file, with the permissions of what it will replace."""
    # Not `tempfile`, whose files only their owner can read.
    file = open(temporary, "x", encoding="utf-8", newline="\n")  # noqa: SIM115
    if target.exists():
        shutil.copymode(target, temporary)
    return file


def _close(file: TextIO, *, flushed: bool) -> None:
    """Close a file; `flushed`: so that it survives a power cut."""
    file.flush()
    if flushed:
        os.fsync(file.fileno())
    file.close()


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files: see `replaced_when_done`.

    Raises:
        FileError: a folder or file cannot be written; none of the files was changed, unless the
            last step, renaming, fails.
    """
    with replaced_when_done(list(contents)) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.buffer.write(content.encode() if isinstance(content, str) else content)


def write_text(path: Path, text: str) -> None:
    """Write a text file: see `replaced_when_done`."""
    write_files({path: text})


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary folder, flush it to disk, and rename it to `folder`.

    After an error or a kill, `folder` is either unchanged or complete. Replacing it takes two
    renames; a kill between them leaves the old one as `.NAME.old`.

    Args:
        folder: what to write; it replaces only a folder.
        write: called with the temporary path, to create and fill it.

    Raises:
        FileError: it cannot be written.
    """
    target, temporary = _temporary(folder, folder=True)
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    with ended_by_exception(), naming(folder):
        try:
            write(temporary)
            for path in [*temporary.rglob("*"), temporary]:
                _flush(path)
            if target.exists():
                remove(old)
                os.replace(target, old)
            os.replace(temporary, target)
        except BaseException:  # also an interrupt
            if old.exists() and not target.exists():
                os.replace(old, target)
            remove(temporary)
            raise
        remove(old)
        _flush(target.parent)


def refuse_overwriting(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse outputs that would replace an input, and the name that other programs give to stdout.

    Files are compared as the disk knows them: through links, and whatever the case of their names
    where that makes no difference. Devices and pipes may be both; None stands for a file that is
    not used.

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


def remove(path: Path) -> None:
    """Remove a file or a folder, if possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _discard(file: TextIO) -> None:
    """Close a file; unwritten data is discarded."""
    with suppress(OSError):
        file.close()


def _flush(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut.

    Windows opens no folders, and flushes only files that are open for writing: these stay as they
    are.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
    finally:
        os.close(handle)
