"""Archives of models are unpacked whole; nothing is left of an archive that is refused."""

import errno
import hashlib
import io
import os
import secrets
import signal
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files import archives
from onmt_entmax.files.archives import unpack
from tests.inflection_models import write_model, zipped

NAME = "model"
MOST_BYTES = 200_000  # that an archive may hold here
# An absolute path that nobody else has.
ESCAPED = str(Path(tempfile.gettempdir()) / f"escaped-{os.getpid()}-{secrets.token_hex(8)}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("archives") / NAME, 22)


@pytest.fixture(scope="module")
def archive(model: Path) -> Path:
    path = model.with_suffix(".zip")
    zipped(model, path)
    return path


Files = dict[str, bytes]
"""The contents of the files of an archive or a folder, by name."""


def contents_of(folder: Path) -> Files:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def repack(archive: Path, change: Callable[[Files], object]) -> bytes:
    """Return the content of an archive whose files were changed."""
    with zipfile.ZipFile(archive) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return content.getvalue()


def adding(name: str, content: bytes = b"x") -> Callable[[Files], object]:
    """Return a change that adds a file, or replaces one."""
    return lambda files: files.update({name: content})


def leaving_out(name: str) -> Callable[[Files], object]:
    """Return a change that leaves out a file."""
    return lambda files: files.pop(name)


def test_an_archive_becomes_a_folder_of_its_name(archive: Path, tmp_path: Path) -> None:
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    assert folder == tmp_path / "models" / NAME
    assert os.listdir(folder.parent) == [NAME]


def test_an_unpacked_folder_has_the_files_of_the_model(
    archive: Path, model: Path, tmp_path: Path
) -> None:
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    assert contents_of(folder) == contents_of(model)


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(adding(f"{NAME}/../../escaped"), id="a path out of the folder"),
        pytest.param(adding(ESCAPED), id="an absolute path"),
        pytest.param(adding("other/file"), id="another folder"),
        pytest.param(adding(f"{NAME}/more"), id="a file that is not listed"),
        pytest.param(adding(f"{NAME}/vocab.json"), id="another content"),
        pytest.param(adding(f"{NAME}/SHA256SUMS"), id="another list"),
        pytest.param(dict.clear, id="no file"),
        pytest.param(leaving_out(f"{NAME}/SHA256SUMS"), id="no list"),
        pytest.param(leaving_out(f"{NAME}/vocab.json"), id="a file is missing"),
        pytest.param(adding(f"{NAME}/zeros", b"\0" * MOST_BYTES), id="too large"),
    ],
)
def test_an_archive_of_other_files_is_refused(
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Files], object],
) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", MOST_BYTES)
    before = sorted(tmp_path.parent.iterdir())
    with pytest.raises(UserError, match=r"^x.zip: [^\n]+$"):
        unpack(repack(archive, change), "x.zip", tmp_path / "into")
    assert not (tmp_path / "into").exists()
    assert sorted(tmp_path.parent.iterdir()) == before
    assert not Path(ESCAPED).exists()


def add_large_file(files: Files) -> None:
    """Add a large file, with its checksum in order, which packs to nothing."""
    content = b"\0" * MOST_BYTES
    files[f"{NAME}/zeros"] = content
    files[f"{NAME}/SHA256SUMS"] += f"{hashlib.sha256(content).hexdigest()}  zeros\n".encode()


def add_many_files(files: Files) -> None:
    """Add many files that take no room, with their checksums in order."""
    digest = hashlib.sha256(b"").hexdigest()
    for number in range(1001):
        files[f"{NAME}/{number}"] = b""
        files[f"{NAME}/SHA256SUMS"] += f"{digest}  {number}\n".encode()


def test_a_large_file_is_unpacked(archive: Path, tmp_path: Path) -> None:
    """Outside of tests, an archive may hold more than `MOST_BYTES`."""
    folder = unpack(repack(archive, add_large_file), "x.zip", tmp_path / "into")
    assert (folder / "zeros").stat().st_size == MOST_BYTES


@pytest.mark.parametrize("change", [add_large_file, add_many_files])
def test_an_archive_that_holds_too_much_is_not_unpacked(
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Files], None],
) -> None:
    """Everything else about the archive is in order."""
    monkeypatch.setattr(archives, "MOST_BYTES", MOST_BYTES)
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(UserError, match=r"x.zip: .*it holds more than [0-9,]+ bytes or 1000 files"):
        unpack(repack(archive, change), "x.zip", tmp_path / "into")


# --- errors and signals while unpacking ------------------------------------------------------


def test_an_error_of_the_disk_is_told(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", fail)
    with pytest.raises(UserError, match=r"x.zip: damaged, or cannot be unpacked .No space left"):
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")


def test_a_signal_while_unpacking_leaves_nothing(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract = zipfile.ZipFile.extractall

    def extract_and_end(*arguments: object) -> None:
        extract(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(zipfile.ZipFile, "extractall", extract_and_end)
    with pytest.raises(SystemExit) as exit_:
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")
    assert exit_.value.code == 128 + signal.SIGTERM
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["temporary"]
