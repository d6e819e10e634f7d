"""Links in the folder of a model: a model is only read from within its folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load, read_training_state
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from tests.models import VOCABULARIES


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("vocab.json", load),
        ("config.yaml", load),
        ("SHA256SUMS", load),
        ("training", read_training_state),
    ],
)
def test_a_link_out_of_the_folder_is_refused(
    folder: Path, tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"{name}.*: is a link out of the folder, to .*elsewhere"):
        read(folder)


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "vocab.json").rename(folder / "words.json")
    (folder / "vocab.json").symlink_to("words.json")
    write_list(folder)
    assert load(folder).vocabularies == VOCABULARIES


def test_a_link_to_the_folder_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert load(tmp_path / "link").vocabularies == VOCABULARIES
