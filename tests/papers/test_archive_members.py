"""Files in archives of corpora, and archives without them."""

import io
import tarfile
import zipfile

import pytest

from onmt_entmax.errors import UserError
from tools.papers.archives import members

CONTENT = b"a sentence\n"


def tar_archive() -> bytes:
    """Return an archive with the file `corpus/train.txt`, beside the folder of it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        folder = tarfile.TarInfo("corpus")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        file = tarfile.TarInfo("corpus/train.txt")
        file.size = len(CONTENT)
        archive.addfile(file, io.BytesIO(CONTENT))
    return buffer.getvalue()


def zip_archive() -> bytes:
    """Return an archive with the file `corpus/train.txt`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("corpus/train.txt", CONTENT)
    return buffer.getvalue()


ARCHIVES = {"corpus.tgz": tar_archive(), "corpus.zip": zip_archive()}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_file_of_an_archive_is_read(name: str) -> None:
    assert members(name, ARCHIVES[name], "corpus")("train.txt") == CONTENT


REFUSED = "is not the archive that was expected: "


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_missing_file_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: {REFUSED}.*corpus/dev.txt"):
        members(name, ARCHIVES[name], "corpus")("dev.txt")


def test_a_folder_in_the_place_of_a_file_is_refused() -> None:
    with pytest.raises(UserError, match=f"corpus.tgz: {REFUSED}.*corpus is no file"):
        members("corpus.tgz", ARCHIVES["corpus.tgz"], "")("corpus")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("corpus.tgz", "Compressed file ended before the end-of-stream marker was reached"),
        ("corpus.zip", "File is not a zip file"),
    ],
)
def test_an_archive_that_was_cut_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"{name}: {REFUSED}{reason}"):
        members(name, ARCHIVES[name][:40], "corpus")("train.txt")
