"""Read files: lines of text, or all bytes of a file whose size is limited."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from onmt_entmax.errors import counted
from onmt_entmax.files.paths import FileError, naming

# How files that are not UTF-8 text begin, and what to do with them.
_SAVE_AS_UTF_8 = "save it as UTF-8"
_OTHER_FORMATS = {
    b"\x1f\x8b": "it is compressed by gzip; unpack it first",
    b"\xfd7zXZ": "it is compressed by xz; unpack it first",
    b"BZh": "it is compressed by bzip2; unpack it first",
    b"\x28\xb5\x2f\xfd": "it is compressed by zstd; unpack it first",
    b"PK\x03\x04": "it is a ZIP archive, as spreadsheets are; save it as text in UTF-8",
    b"\xd0\xcf\x11\xe0": "it is an old file of Excel or Word; save it as text in UTF-8",
    b"\xff\xfe": "it is UTF-16; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16; save it as UTF-8",
}


def read_lines(path: Path, name: str = "") -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, without line ends (LF or CR LF) and byte order mark.

    Only a line feed ends a line. Unicode has other separators, which may occur within a sentence:
    if they ended lines, line N of a source file would not belong to line N of its target file.

    Args:
        path: path of the file.
        name: what people call it, if that is not its path.

    Raises:
        FileError: the file cannot be read, or a line is not UTF-8.
    """
    with naming(path, "read"), open(path, "rb") as file:
        yield from text_lines(file, name or str(path))


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of an open file as `read_lines` does; `name` is for its error."""
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            remedy = _remedy(line) if number == 1 else _SAVE_AS_UTF_8
            reason = f"not UTF-8 text ({error.reason}); {remedy}"
            raise FileError(f"{name}:{number}: {reason}") from None
        yield text.removesuffix("\n").removesuffix("\r")


def _remedy(beginning: bytes) -> str:
    """Return what to do with a file that is not UTF-8, by its first bytes."""
    for signature, remedy in _OTHER_FORMATS.items():
        if beginning.startswith(signature):
            return remedy
    return _SAVE_AS_UTF_8


def read_aligned(*paths: Path) -> list[list[str]]:
    """Return the lines of files that belong together line by line.

    Raises:
        FileError: a file cannot be read, or has another number of lines than the first.
    """
    columns = [list(read_lines(path)) for path in paths]
    check_aligned(dict(zip(paths, map(len, columns), strict=True)))
    return columns


def check_aligned(lengths: Mapping[Path, int]) -> None:
    """Check that files have as many lines as the first of them.

    Args:
        lengths: number of lines of each file, of at least one.

    Raises:
        FileError: names the first file with another number.
    """
    (first, expected), *others = lengths.items()
    for path, length in others:
        if length != expected:
            raise FileError(
                f"{path}: {counted(length, 'line')}, but {first} has {expected:,}; they must "
                "correspond line by line"
            )


def count_lines(path: Path) -> int:
    """Return the number of lines that `read_lines` yields, without decoding them.

    Raises:
        FileError: the file cannot be read.
    """
    with naming(path, "read"), open(path, "rb") as file:
        return sum(1 for _ in file)


def read_bytes(path: Path, at_most: int) -> bytes:
    """Return the content of a regular file, which is the only kind that cannot block.

    Args:
        path: path of the file; links are followed.
        at_most: largest size in bytes.

    Raises:
        FileError: if the file cannot be read, is not a regular one, or is larger than `at_most`.
    """
    with naming(path, "read"):
        if path.exists() and not path.is_file():
            raise FileError(f"{path}: is not a regular file")
        if path.stat().st_size > at_most:
            raise FileError(f"{path}: is larger than the {at_most:,} bytes that it may have")
        return path.read_bytes()
