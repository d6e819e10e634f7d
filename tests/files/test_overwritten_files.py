"""Files that must not be overwritten: those in the way, inputs, and files of a model."""

import os
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, refuse_overwriting, write_files, write_folder, write_text

# --- a file where something else is to be written --------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file, with a link to it beside it."""
    path = tmp_path / "file"
    path.write_text("before")
    (tmp_path / "link").symlink_to("file")
    return path


@pytest.mark.parametrize("name", ["file", "link"])
def test_a_file_does_not_become_the_folder_of_another(file: Path, name: str) -> None:
    path = file.with_name(name)
    with pytest.raises(FileError, match=f"since {path} is a file, not a folder"):
        write_text(path / "below" / "x", "text")
    assert file.read_text() == "before"


def test_a_file_is_not_replaced_by_a_folder(file: Path) -> None:
    with pytest.raises(FileError, match="file: is a file already"):
        write_folder(file, Path.mkdir)
    assert file.read_text() == "before"


def test_a_folder_is_written_in_the_place_of_a_link_to_another(tmp_path: Path) -> None:
    """What the link leads to may be any folder of the user."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "letter").write_text("before")
    (tmp_path / "step_1").symlink_to("documents")
    write_folder(tmp_path / "step_1", Path.mkdir)
    assert [*(tmp_path / "step_1").iterdir()] == []
    assert {path.name for path in tmp_path.iterdir()} == {"documents", "step_1"}
    assert (tmp_path / "documents" / "letter").read_text() == "before"


def test_a_file_is_not_written_under_two_names_at_once(file: Path) -> None:
    with pytest.raises(FileError, match="is to be written twice"):
        write_files({file: "", file.with_name("link"): ""})
    assert file.read_text() == "before"


def test_a_file_that_the_user_may_not_write_is_not_replaced(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renaming another file over it would be allowed."""
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(FileError, match=r"file: cannot be written .Permission denied"):
        write_text(file, "text")
    assert file.read_text() == "before"


# --- outputs that are inputs -----------------------------------------------------------------


def test_a_file_that_is_no_input_may_be_overwritten(file: Path, tmp_path: Path) -> None:
    """None stands for an input or an output that the user did not name."""
    refuse_overwriting([tmp_path / "input", None, Path("/dev/stdin")], [file, None])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("file", id="its own name"),
        pytest.param("link", id="a symbolic link"),
        # On some disks, a name in another case also stands for the same file.
        pytest.param("hard", id="a hard link"),
    ],
)
def test_an_input_is_not_overwritten_under_any_name(file: Path, name: str) -> None:
    file.with_name("hard").hardlink_to(file)
    with pytest.raises(FileError, match=f"{name}: is read, and would be overwritten"):
        refuse_overwriting([file], [file.with_name(name)])


def test_a_hyphen_is_not_an_output() -> None:
    with pytest.raises(FileError, match="-: the standard output is /dev/stdout"):
        refuse_overwriting([], [Path("-")])


# --- outputs in a model folder ---------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with two files of a model, and another file."""
    for name in ("model.safetensors", "vocab.json", "output"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("model.safetensors", id="the weights"),
        pytest.param("vocab.json", id="the vocabularies"),
        pytest.param("SHA256SUMS", id="a list of checksums, which the folder lacks"),
    ],
)
def test_a_file_of_a_model_is_not_overwritten(model: Path, name: str) -> None:
    with pytest.raises(FileError, match=f"{name}: is a file of a model"):
        refuse_overwriting([], [model / name])


def test_another_file_in_a_model_folder_may_be_overwritten(model: Path) -> None:
    refuse_overwriting([], [model / "output"])
