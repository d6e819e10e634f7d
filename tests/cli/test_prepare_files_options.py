"""`onmt-entmax prepare files`: its paths, the sets it makes, and what it leaves out and plans."""

import json
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import prepare_files
from tests.cli.parallel_pairs import DEV, arguments_with, sentences, write_pairs
from tests.cli.preparing import read_lines
from tests.in_process import exit_status

FEWEST_UPDATES = 2_000  # of a training on few pairs
VALIDATIONS = 8  # of every training


@pytest.fixture
def folder(working_folder: Path) -> Path:
    """The current folder, with the pairs."""
    write_pairs(working_folder)
    return working_folder


# --- paths ---


@pytest.mark.usefixtures("pyonmttok")
def test_paths_of_a_configuration_may_have_spaces_and_yaml_marks(folder: Path) -> None:
    out = Path("it: is #1")
    assert exit_status(prepare_files.main, arguments_with(f"{DEV} --out '{out}'")) == 0
    settings = yaml.safe_load((out / "train.yaml").read_text())
    assert settings["src_subword_model"] == str(out / "bpe.model")
    assert settings["data"]["valid"]["path_tgt"] == str(out / "val.en")


# --- sets ---


def pairs_in(folder: Path, part: str) -> list[tuple[str, str]]:
    """Return the pairs of a part, in order."""
    sides = [read_lines(folder / f"{part}.{language}") for language in ("ro", "en")]
    return list(zip(*sides, strict=True))


@pytest.mark.usefixtures("pyonmttok")
def test_as_many_pairs_as_asked_for_are_held_out(folder: Path) -> None:
    assert exit_status(prepare_files.main, arguments_with("--val_size 10")) == 0
    assert len(pairs_in(folder / "data", "val")) == 10


@pytest.mark.usefixtures("pyonmttok")
def test_no_sentence_that_is_held_out_is_trained_on(folder: Path) -> None:
    assert exit_status(prepare_files.main, arguments_with("--val_size 10")) == 0
    for language in ("ro", "en"):
        held_out = read_lines(folder / "data" / f"val.{language}")
        assert not {*held_out} & {*read_lines(folder / "data" / f"train.{language}")}


@pytest.mark.usefixtures("pyonmttok")
def test_a_test_set_is_copied(folder: Path) -> None:
    options = "--test dev.ro dev.en --val_size 10"
    assert exit_status(prepare_files.main, arguments_with(options)) == 0
    copy = folder / "data" / "test" / "test.en"
    assert copy.read_text() == (folder / "dev.en").read_text()


# --- counts of pairs in the record ---


def recorded_counts(folder: Path) -> dict[str, int]:
    """Return the numbers of pairs in the record of a preparation."""
    record = json.loads((folder / "data" / "prepare.json").read_text(encoding="utf-8"))
    counts: dict[str, int] = record["pairs"]
    return counts


@pytest.mark.usefixtures("pyonmttok")
def test_pairs_of_unequal_lengths_are_counted_and_left_out(folder: Path) -> None:
    for language, line in (("ro", "."), ("en", "the cats " * 20)):
        with open(folder / f"train.{language}", "a", encoding="utf-8") as file:
            file.write(f"{line}\n" * 3)
    assert exit_status(prepare_files.main, arguments_with(DEV)) == 0
    counts = recorded_counts(folder)
    assert counts == {"read": 303, "shared_with_val": 0, "unfit": 3, "train": 300, "val": 20}
    assert len(pairs_in(folder / "data", "train")) == 300


@pytest.mark.usefixtures("pyonmttok")
def test_copies_of_held_out_pairs_are_counted_and_left_out(folder: Path) -> None:
    """Each pair stands twice, and has a number, so that no other pair has one of its sentences."""
    for language in ("ro", "en"):
        lines = [f"{line} {number}\n" for number, line in enumerate(sentences(language, 300))]
        (folder / f"train.{language}").write_text("".join(2 * lines), encoding="utf-8")
    assert exit_status(prepare_files.main, arguments_with("--val_size 10")) == 0
    counts = recorded_counts(folder)
    assert counts == {"read": 600, "shared_with_val": 10, "unfit": 0, "train": 580, "val": 10}
    assert len(pairs_in(folder / "data", "train")) == 580


# --- the length of the training ---


@pytest.mark.usefixtures("pyonmttok")
def test_a_training_on_few_pairs_has_the_fewest_updates(folder: Path) -> None:
    assert exit_status(prepare_files.main, arguments_with(DEV)) == 0
    settings = yaml.safe_load((folder / "data" / "train.yaml").read_text())
    assert settings["train_steps"] == FEWEST_UPDATES
    assert settings["valid_steps"] == FEWEST_UPDATES // VALIDATIONS
