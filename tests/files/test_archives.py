"""Archives of models are unpacked whole; nothing is left of an archive that is refused."""

import errno
import os
import signal
import tempfile
import zipfile
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files.archives import unpack
from tests.files.repacking import NAME, Change, adding, leaving_out, repack


def test_an_archive_becomes_a_folder_of_its_name(archive: Path, tmp_path: Path) -> None:
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    assert folder == tmp_path / "models" / NAME
    assert os.listdir(folder.parent) == [NAME]


def test_an_unpacked_folder_has_the_files_of_the_model(
    archive: Path, model_folder: Path, tmp_path: Path
) -> None:
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    contents, expected = (
        {path.name: path.read_bytes() for path in place.iterdir()}
        for place in (folder, model_folder)
    )
    assert contents == expected


# --- nothing is left of an archive that is not unpacked ---


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, `unpack`'s among them; it lies in `tmp_path`, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


ONE_FOLDER = "not a zip archive of one model folder"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(dict.clear, ONE_FOLDER, id="no file"),
        pytest.param(adding("other/file"), ONE_FOLDER, id="another folder"),
        pytest.param(
            adding(f"{NAME}/../../escaped"),
            f"{NAME}/escaped: was not there",
            id="a path out of the folder",
        ),
        pytest.param(
            adding(f"{NAME}/more"), f"{NAME}/more: was not there", id="a file that is not listed"
        ),
        pytest.param(
            adding(f"{NAME}/vocab.json"),
            f"{NAME}/vocab.json: its content is not what was written",
            id="another content",
        ),
        pytest.param(
            leaving_out(f"{NAME}/vocab.json"), f"{NAME}/vocab.json: is missing", id="a missing file"
        ),
        pytest.param(
            leaving_out(f"{NAME}/SHA256SUMS"), "its folder has no SHA256SUMS", id="no list"
        ),
        pytest.param(adding(f"{NAME}/SHA256SUMS"), "was not there", id="a list without names"),
    ],
)
def test_an_archive_of_other_files_is_refused_and_leaves_nothing(
    archive: Path, tmp_path: Path, temporary: Path, change: Change, reason: str
) -> None:
    with pytest.raises(UserError, match=r"^x.zip: [^\n]+$") as error:
        unpack(repack(archive, change), "x.zip", tmp_path / "into")
    assert reason in str(error.value)
    assert [*tmp_path.rglob("*")] == [temporary]


def test_an_absolute_path_in_an_archive_is_refused_and_not_written(
    archive: Path, tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(UserError, match=f"^x.zip: {ONE_FOLDER}$"):
        unpack(repack(archive, adding(str(tmp_path / "escaped"))), "x.zip", tmp_path / "into")
    assert [*tmp_path.rglob("*")] == [temporary]


def test_an_error_of_the_disk_is_told(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", fail)
    with pytest.raises(UserError, match=r"x.zip: damaged, or cannot be unpacked .No space left"):
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")


def test_a_signal_while_unpacking_leaves_nothing(
    archive: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract = zipfile.ZipFile.extractall

    def extract_and_end(*arguments: object) -> None:
        extract(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(zipfile.ZipFile, "extractall", extract_and_end)
    with pytest.raises(SystemExit) as exit_:
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")
    assert exit_.value.code == 128 + signal.SIGTERM
    assert [*tmp_path.rglob("*")] == [temporary]
