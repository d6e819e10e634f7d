"""`onmt-entmax prepare files`: sets that are held out or copied, and paths of its files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.cli import prepare_files
from tests.cli.parallel_pairs import DEV, arguments_with, write_pairs
from tests.in_process import exit_status


@pytest.fixture
def folder(working_folder: Path) -> Path:
    """The current folder, with the pairs."""
    write_pairs(working_folder)
    return working_folder


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


# --- paths ---


@pytest.mark.usefixtures("pyonmttok")
def test_paths_of_a_configuration_may_have_spaces_and_yaml_marks(folder: Path) -> None:
    out = Path("it: is #1")
    assert exit_status(prepare_files.main, arguments_with(f"{DEV} --out '{out}'")) == 0
    settings = yaml.safe_load((out / "train.yaml").read_text())
    assert settings["src_subword_model"] == str(out / "bpe.model")
    assert settings["data"]["valid"]["path_tgt"] == str(out / "val.en")


# --- sets ---


@pytest.mark.usefixtures("pyonmttok")
def test_a_development_set_is_held_out(folder: Path) -> None:
    assert exit_status(prepare_files.main, arguments_with("--val_size 10")) == 0
    assert line_count(folder / "data" / "val.en") == 10


@pytest.mark.usefixtures("pyonmttok")
def test_a_test_set_is_copied(folder: Path) -> None:
    options = "--test dev.ro dev.en --val_size 10"
    assert exit_status(prepare_files.main, arguments_with(options)) == 0
    copy = folder / "data" / "test" / "test.en"
    assert copy.read_text() == (folder / "dev.en").read_text()


@pytest.mark.usefixtures("pyonmttok")
def test_few_pairs_take_the_fewest_updates(folder: Path) -> None:
    assert exit_status(prepare_files.main, arguments_with(DEV)) == 0
    settings = yaml.safe_load((folder / "data" / "train.yaml").read_text())
    assert (settings["train_steps"], settings["valid_steps"]) == (2_000, 250)


@pytest.fixture
def pair_counts(folder: Path, pyonmttok: object) -> dict[str, Any]:
    """The counts in the record of a call that holds out ten pairs.

    It counts the pairs that were `read`, and those that were left out: `unfit` ones, of unequal
    lengths, and those that are `shared_with_val`.
    """
    options = "--val_size 10 --max_ratio 1.5"
    assert exit_status(prepare_files.main, arguments_with(options)) == 0
    pairs: dict[str, Any] = json.loads((folder / "data" / "prepare.json").read_text())["pairs"]
    return pairs


def test_pairs_of_unequal_lengths_are_left_out(pair_counts: dict[str, Any]) -> None:
    assert pair_counts["unfit"] > 0


def test_the_record_says_where_all_pairs_are(pair_counts: dict[str, Any], folder: Path) -> None:
    to_train_on = line_count(folder / "data" / "train.en")
    left_out = pair_counts["shared_with_val"] + pair_counts["unfit"]
    assert pair_counts["read"] == to_train_on + 10 + left_out
