"""Files of `torch.save`: small ones that would fill the memory are refused."""

import copy
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from onmt_entmax.checkpoint import STATE, read_torch_file, read_training_state
from onmt_entmax.files.checksums import write_list
from tests.checkpoint.refusals import error_line

ZEROS = {"zeros": torch.zeros(2**20)}  # 4 MB, and compressed 4 KB


def read(path: Path) -> Any:
    with open(path, "rb") as file:
        return read_torch_file(file)


def compress(path: Path) -> None:
    """Write an archive again, with compressed entries."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def repeat_largest_entry(path: Path) -> None:
    """Let an archive list its largest entry once more, under another name."""
    with zipfile.ZipFile(path, "a") as archive:
        twin = copy.copy(max(archive.infolist(), key=lambda entry: entry.file_size))
        twin.filename += "_twin"
        archive.filelist.append(twin)
        archive.comment = b"the list has changed"  # so that it is written again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of `torch.save`."""
    torch.save(ZEROS, tmp_path / "zeros.pt")
    return tmp_path / "zeros.pt"


def test_a_file_as_torch_writes_it_is_read(path: Path) -> None:
    assert read(path)["zeros"].equal(ZEROS["zeros"])


def test_a_file_in_the_form_before_pytorch_1_6_is_read(tmp_path: Path) -> None:
    torch.save(ZEROS, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert read(tmp_path / "old.pt")["zeros"].equal(ZEROS["zeros"])


def test_torch_itself_reads_compressed_entries(path: Path) -> None:
    """Otherwise nothing would have to be refused."""
    compress(path)
    assert torch.load(path, weights_only=True)["zeros"].equal(ZEROS["zeros"])


@pytest.mark.parametrize("change", [compress, repeat_largest_entry])
def test_entries_that_are_larger_than_the_file_are_refused(path: Path, change: Any) -> None:
    change(path)
    with pytest.raises(ValueError, match="its entries are larger than the file"):
        read(path)


def test_a_compressed_training_state_is_refused_with_its_name(folder: Path) -> None:
    torch.save(ZEROS, folder / STATE)
    compress(folder / STATE)
    write_list(folder)
    line = error_line(lambda: read_training_state(folder))
    assert line == f"{folder / STATE}: cut short or damaged"
