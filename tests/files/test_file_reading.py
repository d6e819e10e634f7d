"""Reading of lines, bytes and JSON: what a line is, and files that cannot be read."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from onmt_entmax.files import (
    FileError,
    count_lines,
    read_aligned,
    read_bytes,
    read_lines,
    read_object,
)
from tests.files.folders import make_unreadable_files

# --- lines ---


@pytest.fixture
def four_lines(tmp_path: Path) -> Path:
    """A file of four lines with other marks of lines in them, and two byte order marks."""
    path = tmp_path / "text"
    path.write_bytes("\ufeffa b\rc\r\nd\u2028e\x0bf\n\n\ufeffg".encode())
    return path


def test_lines_end_at_line_feeds_only(four_lines: Path) -> None:
    """The byte order mark at the beginning is not text."""
    assert list(read_lines(four_lines)) == ["a b\rc", "d\u2028e\x0bf", "", "\ufeffg"]


def test_lines_are_counted_as_they_are_read(four_lines: Path) -> None:
    assert count_lines(four_lines) == 4


def test_lines_of_two_files_are_read_together(four_lines: Path, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("1\n2\n3\n4")
    assert read_aligned(four_lines, tmp_path / "b")[1] == ["1", "2", "3", "4"]


def test_two_files_of_different_lengths_are_not_read_together(
    four_lines: Path, tmp_path: Path
) -> None:
    (tmp_path / "b").write_text("1\n2\n3")
    with pytest.raises(FileError, match=r"b: 3 lines, but .*text has 4"):
        read_aligned(four_lines, tmp_path / "b")


# --- files that are not text in UTF-8 ---


def test_a_line_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"a\n\xff")
    with pytest.raises(FileError, match=r"bytes:2: not UTF-8 text"):
        list(read_lines(tmp_path / "bytes"))


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        pytest.param(gzip.compress(b"a\n"), "compressed by gzip; unpack it first", id="gzip"),
        pytest.param(lzma.compress(b"a\n"), "compressed by xz; unpack it first", id="xz"),
        pytest.param(bz2.compress(b"a\n"), "compressed by bzip2; unpack it first", id="bzip2"),
        pytest.param(
            bytes.fromhex("28b52ffd"), "compressed by zstd; unpack it first", id="zstd: its mark"
        ),
        pytest.param(
            bytes.fromhex("d0cf11e0a1b11ae1"),
            "an old file of Excel or Word; save it as text in UTF-8",
            id="xls: its mark",
        ),
        pytest.param("a\tb\n".encode("utf-16"), "is UTF-16; save it as UTF-8", id="UTF-16"),
        pytest.param("ä\n".encode("latin-1"), "; save it as UTF-8", id="Latin-1"),
    ],
)
def test_a_file_of_another_format_is_refused_with_what_to_do(
    tmp_path: Path, content: bytes, remedy: str
) -> None:
    (tmp_path / "bytes").write_bytes(content)
    with pytest.raises(FileError, match=rf"bytes:1: not UTF-8 text \(.*\).*{remedy}$"):
        list(read_lines(tmp_path / "bytes"))


def test_a_spreadsheet_is_refused_with_what_to_do(tmp_path: Path) -> None:
    part = zipfile.ZipInfo("[Content_Types].xml")  # of a fixed date: the bytes never change
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as archive:
        archive.writestr(part, "<Types/>" * 100, zipfile.ZIP_DEFLATED)
    with pytest.raises(FileError, match=r"table.xlsx:1: .*save it as text in UTF-8$"):
        list(read_lines(tmp_path / "table.xlsx"))


# --- bytes ---


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("missing", "cannot be read (No such file or directory)", id="missing"),
        pytest.param("large", "is larger than the 10 bytes that it may have", id="large"),
        pytest.param("pipe", "is not a regular file", id="a pipe"),
        pytest.param("folder", "is not a regular file", id="a folder"),
        pytest.param(
            "loop", "cannot be read (Too many levels of symbolic links)", id="a link to itself"
        ),
        pytest.param("device", "is not a regular file", id="a device"),
    ],
)
def test_an_error_says_why_a_file_cannot_be_read(tmp_path: Path, name: str, reason: str) -> None:
    make_unreadable_files(tmp_path)
    with pytest.raises(FileError) as raised:
        read_bytes(tmp_path / name, 10)
    assert str(raised.value) == f"{tmp_path / name}: {reason}"


def test_a_name_with_a_null_byte_is_shown_in_quotes() -> None:
    """The line would not be printable otherwise."""
    with pytest.raises(FileError) as raised:
        read_bytes(Path("a\0b"), 10)
    assert str(raised.value) == "'a\\x00b': a null byte, which no file name has"


def test_a_dash_is_a_file_and_not_the_standard_input() -> None:
    with pytest.raises(
        FileError, match=r"^-: cannot be read .*the standard input is not read here"
    ):
        read_bytes(Path("-"), 10)


def test_links_to_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link", 7) == b"content"


# --- JSON ---


def test_an_object_is_read_from_json(tmp_path: Path) -> None:
    (tmp_path / "object").write_text('{"a": [1]}')
    assert read_object(tmp_path / "object") == {"a": [1]}


def test_json_that_is_not_text_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"a\n\xff")
    with pytest.raises(FileError, match=r"bytes: damaged"):
        read_object(tmp_path / "bytes")
