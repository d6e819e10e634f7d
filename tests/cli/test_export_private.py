"""`onmt-entmax export`: private files that a stranger's model folder refers to stay private."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import load, save
from onmt_entmax.cli.export import main
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import differences, write_list
from onmt_entmax.model import build_model
from tests.cli.exporting import export, mentions
from tests.in_process import refusal
from tests.models import BRNN, VOCABULARIES

SECRET = "PRIVATE KEY"  # content of the private file

# --- a file that the folder refers to ---


class Reference(NamedTuple):
    """How a folder refers to a private file, and the error that follows.

    Attributes:
        name: the file as an option of the folder names it; {private} stands for its whole path.
        message: a part of the error.
        is_link: whether the folder has a link of this name to the file.
    """

    name: str
    message: str
    is_link: bool = False


NOT_IN_FOLDER = "is not a file of this folder"
LINK = "is a link out of the folder"
REFERENCES = {
    "path": Reference("{private}", NOT_IN_FOLDER),
    "relative path": Reference("../home/key", NOT_IN_FOLDER),
    "name in the working directory": Reference("key", NOT_IN_FOLDER),
    "folder above": Reference("..", NOT_IN_FOLDER),
    "path in the working directory": Reference("./key", NOT_IN_FOLDER),
    "link": Reference("codes", LINK, is_link=True),
    "link in place of the cells": Reference("cells.tsv", LINK, is_link=True),
}


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private file, `key` in the working directory, which is `home` beside the model."""
    path = tmp_path / "home" / "key"
    path.parent.mkdir()
    path.write_text(SECRET)
    monkeypatch.chdir(path.parent)
    return path


@pytest.fixture(params=REFERENCES.values(), ids=REFERENCES)
def reference(request: pytest.FixtureRequest) -> Reference:
    reference: Reference = request.param
    return reference


@pytest.fixture
def folder(reference: Reference, private: Path, tmp_path: Path) -> Path:
    """A stranger's folder, whose checksums are in order."""
    name = reference.name.replace("{private}", str(private))
    options = {"transforms": ["bpe"], "src_subword_model": name}
    folder = tmp_path / "model"
    save(folder, build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, options)
    if reference.is_link:
        (folder / name).symlink_to(private)
    write_list(folder)
    return folder


def test_a_private_file_is_not_exported(reference: Reference, folder: Path, tmp_path: Path) -> None:
    assert reference.message in refusal(main, [folder, tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_refers_to_a_private_file_is_not_loaded(
    reference: Reference, folder: Path
) -> None:
    with pytest.raises(UserError, match=reference.message):
        load(folder)


@pytest.mark.parametrize("reference", [REFERENCES["link"]], indirect=True, ids=["link"])
def test_verifying_names_a_link_out_of_the_folder(reference: Reference, folder: Path) -> None:
    assert differences(folder)[0].startswith(f"{folder / reference.name}: {LINK}")


# --- a file in the folder ---


def test_a_file_that_no_transform_reads_is_not_exported(tmp_path: Path) -> None:
    options = {"transforms": ["filtertoolong"], "src_subword_model": "key.txt"}
    model, files = build_model(BRNN, VOCABULARIES), {"key.txt": SECRET.encode()}
    save(tmp_path / "model", model, BRNN, VOCABULARIES, options, others=files)
    export(tmp_path / "model", tmp_path / "out")
    assert not mentions(tmp_path / "out", SECRET)
    assert load(tmp_path / "out").options["transforms"] == ["filtertoolong"]
