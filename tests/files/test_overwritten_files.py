"""Files that must not be overwritten: those in the way, inputs, and those of a model."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, refuse_overwriting, write_files, write_folder, write_text


class TestAFile:
    """Stays as it is where something else should be written."""

    @pytest.fixture(autouse=True)
    def file(self, tmp_path: Path) -> Iterator[Path]:
        """A file, and a link to it; after each test the file has its content still."""
        file = tmp_path / "file"
        file.write_text("before")
        (tmp_path / "link").symlink_to("file")
        yield file
        assert file.read_text() == "before"

    @pytest.mark.parametrize("name", ["file", "link"])
    def test_is_not_a_folder_for_another(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(FileError, match=f"since {tmp_path / name} is a file, not a folder"):
            write_text(tmp_path / name / "below" / "x", "text")

    def test_is_not_replaced_by_a_folder(self, file: Path) -> None:
        with pytest.raises(FileError, match="file: is a file"):
            write_folder(file, Path.mkdir)

    def test_is_not_written_under_two_names(self, tmp_path: Path, file: Path) -> None:
        with pytest.raises(FileError, match="is to be written twice"):
            write_files({file: "", tmp_path / "link": ""})

    def test_is_not_replaced_without_permission(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
        with pytest.raises(FileError, match=r"file: cannot be written .Permission denied"):
            write_text(file, "text")


# --- outputs that are inputs -----------------------------------------------------------------


def test_other_files_may_be_overwritten(tmp_path: Path) -> None:
    """None stands for an input or output that was not named."""
    (tmp_path / "a").touch()
    refuse_overwriting([tmp_path / "a", None, Path("/dev/stdin")], [tmp_path / "b", None])


@pytest.mark.parametrize("name", ["soft", "hard"])
def test_inputs_are_not_overwritten_under_another_name(tmp_path: Path, name: str) -> None:
    """A hard link is as a name in another case, on some disks."""
    (tmp_path / "a").touch()
    (tmp_path / "soft").symlink_to("a")
    (tmp_path / "hard").hardlink_to(tmp_path / "a")
    with pytest.raises(FileError, match=f"{name}: is read, and would be overwritten"):
        refuse_overwriting([tmp_path / "a"], [tmp_path / name])


def test_a_hyphen_is_not_an_output() -> None:
    with pytest.raises(FileError, match="-: the standard output is /dev/stdout"):
        refuse_overwriting([], [Path("-")])


# --- outputs in a model folder ---------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with two files of a model."""
    for name in ("model.safetensors", "vocab.json"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.json", "SHA256SUMS"])
def test_files_of_a_model_are_not_overwritten(model: Path, name: str) -> None:
    """A file that the folder lacks, such as a list of checksums, is not written either."""
    with pytest.raises(FileError, match=f"{name}: is a file of a model"):
        refuse_overwriting([], [model / name])


def test_other_files_of_a_models_folder_may_be_overwritten(model: Path) -> None:
    (model / "output").touch()
    refuse_overwriting([], [model / "output"])
