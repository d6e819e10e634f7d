"""`onmt-entmax export`: private files that the model folder of a stranger names stay private."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import load, read_training_state, save
from onmt_entmax.cli.export import main
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import differences, write_list
from onmt_entmax.model import build_model
from tests.cli.exporting import export, mentions
from tests.in_process import refusal
from tests.models import BRNN, VOCABULARIES

# --- named by the folder ---


class Named(NamedTuple):
    """How a folder names a private file, and the error that follows."""

    name: str
    """In the options; {private} stands for its path."""
    message: str
    is_link: bool = False
    """Whether the folder has a link of this name to it."""


NOT_IN_FOLDER = "is not a file of this folder"
LINK = "is a link out of the folder"
NAMED = {
    "path": Named("{private}", NOT_IN_FOLDER),
    "relative path": Named("../home/key", NOT_IN_FOLDER),
    "name in the working directory": Named("key", NOT_IN_FOLDER),
    "folder above": Named("..", NOT_IN_FOLDER),
    "path in the working directory": Named("./key", NOT_IN_FOLDER),
    "link": Named("codes", LINK, is_link=True),
    "link in place of the cells": Named("cells.tsv", LINK, is_link=True),
}


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private file, `key` in the working directory."""
    path = tmp_path / "home" / "key"
    path.parent.mkdir()
    path.write_text("PRIVATE KEY")
    monkeypatch.chdir(path.parent)
    return path


@pytest.fixture(params=NAMED.values(), ids=NAMED)
def named(request: pytest.FixtureRequest) -> Named:
    named: Named = request.param
    return named


@pytest.fixture
def stranger(named: Named, private: Path, tmp_path: Path) -> Path:
    """A folder whose checksums are in order."""
    name = named.name.replace("{private}", str(private))
    options = {"transforms": ["bpe"], "src_subword_model": name}
    folder = tmp_path / "model"
    save(folder, build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, options)
    if named.is_link:
        (folder / name).symlink_to(private)
    write_list(folder)
    return folder


def test_a_private_file_is_not_exported(named: Named, stranger: Path, tmp_path: Path) -> None:
    assert named.message in refusal(main, [stranger, tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_names_a_private_file_is_not_loaded(named: Named, stranger: Path) -> None:
    with pytest.raises(UserError, match=named.message):
        load(stranger)


@pytest.mark.parametrize("named", [NAMED["link"]], indirect=True)
def test_verifying_names_a_link_out_of_the_folder(named: Named, stranger: Path) -> None:
    assert differences(stranger)[0].startswith(f"{stranger / named.name}: {LINK}")


# --- links ---


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("vocab.json", load),
        ("config.yaml", load),
        ("SHA256SUMS", load),
        ("training", read_training_state),
    ],
)
def test_a_link_out_of_a_model_folder_is_refused(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    model = build_model(BRNN, VOCABULARIES)
    save(tmp_path / "model", model, BRNN, VOCABULARIES, {}, {"steps": 3})
    (tmp_path / "model" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "model" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"{name}.*: is a link out of the folder, to .*elsewhere"):
        read(tmp_path / "model")


def test_links_within_a_folder_and_to_it_are_followed(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {})
    (tmp_path / "model" / "vocab.json").rename(tmp_path / "model" / "words.json")
    (tmp_path / "model" / "vocab.json").symlink_to("words.json")
    write_list(tmp_path / "model")
    (tmp_path / "link").symlink_to("model")
    assert load(tmp_path / "link").vocabularies == VOCABULARIES


# --- files that no transform reads ---


def test_a_file_that_no_transform_reads_is_not_exported(tmp_path: Path) -> None:
    options = {"transforms": ["filtertoolong"], "src_subword_model": "key.txt"}
    model, files = build_model(BRNN, VOCABULARIES), {"key.txt": b"PRIVATE KEY"}
    save(tmp_path / "model", model, BRNN, VOCABULARIES, options, others=files)
    export(tmp_path / "model", tmp_path / "out")
    assert not mentions(tmp_path / "out", "PRIVATE KEY")
    assert load(tmp_path / "out").options["transforms"] == ["filtertoolong"]
