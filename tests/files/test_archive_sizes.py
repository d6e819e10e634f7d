"""An archive that unpacks to too much is refused before anything is unpacked.

Everything else about these archives is in order: their lists have the checksums of all files.
"""

import hashlib
import zipfile
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files import archives
from onmt_entmax.files.archives import unpack
from tests.files.repacking import NAME, Change, Files, repack

SMALL_LIMIT = 200_000  # bytes: more than the model and an archive of it
MOST_FILES = 1000  # in any archive


def add_listed(files: Files, name: str, content: bytes) -> None:
    """Add a file to the model folder, and its checksum to the list."""
    files[f"{NAME}/{name}"] = content
    files[f"{NAME}/SHA256SUMS"] += f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()


def add_large_file(files: Files) -> None:
    """Add a file of SMALL_LIMIT bytes, which packs to nothing."""
    add_listed(files, "zeros", bytes(SMALL_LIMIT))


def add_many_files(files: Files) -> None:
    """Add more than MOST_FILES files, all empty."""
    for number in range(MOST_FILES + 1):
        add_listed(files, str(number), b"")


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let archives hold SMALL_LIMIT bytes, in place of a gibibyte."""
    monkeypatch.setattr(archives, "MOST_BYTES", SMALL_LIMIT)


def test_a_large_file_within_the_limit_is_unpacked(archive: Path, tmp_path: Path) -> None:
    """The limit is a gibibyte, without `small_limit`."""
    folder = unpack(repack(archive, add_large_file), "x.zip", tmp_path / "into")
    assert (folder / "zeros").stat().st_size == SMALL_LIMIT


@pytest.mark.usefixtures("small_limit")
def test_an_archive_within_the_small_limit_is_unpacked(archive: Path, tmp_path: Path) -> None:
    assert unpack(archive.read_bytes(), "x.zip", tmp_path / "into").is_dir()


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("change", [add_large_file, add_many_files])
def test_an_archive_that_holds_too_much_is_not_unpacked(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(UserError, match="it holds more than 200,000 bytes or 1000 files"):
        unpack(repack(archive, change), "x.zip", tmp_path / "into")
