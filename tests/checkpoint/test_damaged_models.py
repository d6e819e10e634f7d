"""Model folders that are damaged, or have wrong content: one line names the file and the fault."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.checkpoint import load, read_training_state
from onmt_entmax.files.checksums import write_list
from tests.checkpoint.refusals import error_line
from tests.models import BRNN

CONTENT = ["config.yaml", "vocab.json", "model.safetensors", "training/state.pt"]
FILES = [*CONTENT, "SHA256SUMS"]


def read_all(folder: Path) -> None:
    """Read every file of a folder, as resuming does."""
    load(folder)
    assert read_training_state(folder) == {"step": 3}


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed(folder: Path, name: str) -> None:
    """Twenty random bits are flipped, one at a time. At last, the unchanged file is read."""
    path, generator = folder / name, random.Random(name)
    content = path.read_bytes()
    for _ in range(20):
        bit = generator.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert str(folder) in error_line(lambda: read_all(folder))
    path.write_bytes(content)
    read_all(folder)


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("damage", ["half", "garbage", "nothing"])
def test_damage_with_a_right_checksum_is_refused_with_the_name_of_the_file(
    folder: Path, name: str, damage: str
) -> None:
    """The checksums were computed after the damage, so they do not show it."""
    path = folder / name
    content = path.read_bytes()
    contents = {"half": content[: len(content) // 2], "garbage": b"\x00\xff\xfe", "nothing": b""}
    path.write_bytes(contents[damage])
    write_list(folder)
    assert error_line(lambda: read_all(folder)).startswith(f"{path}: ")


@pytest.mark.parametrize("name", CONTENT)
def test_a_missing_file_is_refused_with_the_name_of_the_folder(folder: Path, name: str) -> None:
    """The list of checksums does not name it either."""
    (folder / name).unlink()
    write_list(folder)
    assert str(folder) in error_line(lambda: read_all(folder))


# --- configurations --------------------------------------------------------------------------


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of config.yaml, but not the list of checksums.

    Args:
        folder: a model folder.
        change: changes the content in place.
    """
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))


def test_a_folder_of_release_1_0_has_no_list_and_loads_with_a_warning(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    # A key of that release, for models that do not use it.
    change_config(folder, lambda content: content["model"].update(tag_head=None))
    with pytest.warns(UserWarning, match="model: has no SHA256SUMS: its files are not checked"):
        assert load(folder).config == BRNN


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"format_version": "2.0"}, "format 2.0 is newer", id="of a later version"),
        pytest.param({"format_version": None}, "no format_version", id="without a version"),
        pytest.param({"model": []}, "model: must be a mapping", id="a list for the model"),
        pytest.param({"options": None}, "options: must be a mapping", id="no options"),
        pytest.param({"options": {"target_order": "up"}}, "target_order: ", id="an unknown order"),
        pytest.param(
            {"model": {"encoder_type": "tree"}}, "encoder_type: must be", id="an unknown encoder"
        ),
        pytest.param({"model": {"rnn_size": 0.5}}, "rnn_size: must be", id="a size out of range"),
        pytest.param(
            {"model": {"head": 8}}, "head: no such key; did you mean 'heads'?", id="a misspelt key"
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_reason(
    folder: Path, change: dict[str, object], message: str
) -> None:
    change_config(folder, lambda content: content.update(change))
    write_list(folder)
    line = error_line(lambda: load(folder))
    assert line.startswith(f"{folder}/config.yaml: ")
    assert message in line


# --- vocabularies ----------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        pytest.param(None, "must be a list of tokens, not None", id="null"),
        pytest.param("abc", "must be a list of tokens, not 'abc'", id="no list"),
        pytest.param([1], "1 is no token, which is a string", id="a number"),
        pytest.param(["a", "a"], "the token 'a' is in the vocabulary twice", id="a token twice"),
        pytest.param(
            ["<unk>"],
            "the special token '<blank>' is not in the vocabulary",
            id="too few special tokens",
        ),
    ],
)
def test_a_wrong_vocabulary_is_refused_with_the_reason(
    folder: Path, side: str, tokens: Any, reason: str
) -> None:
    content = json.loads((folder / "vocab.json").read_text())
    content[side] = tokens
    (folder / "vocab.json").write_text(json.dumps(content))
    write_list(folder)
    assert error_line(lambda: load(folder)) == f"{folder}/vocab.json: {side}: {reason}"
