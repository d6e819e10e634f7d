"""Files that the calls of `calls_with_paths` read."""

import shutil
from pathlib import Path

import pytest

from onmt_entmax.cli import translate
from tests.commands import ROOT
from tests.in_process import success
from tests.toy import write_config


def write_inputs(folder: Path, inflection_model: Path) -> None:
    """Write all files into a folder.

    Args:
        folder: folder to fill.
        inflection_model: copied to `inflection`; `sentences` is the model of a release.
    """
    shutil.copytree(inflection_model, folder / "inflection")
    shutil.copytree(ROOT / "tests" / "data" / "model_1.0", folder / "sentences")
    (folder / "checkpoint").write_bytes(b"")
    write_texts(folder)
    write_tables(folder)
    write_report(folder)
    write_training(folder)


def write_texts(folder: Path) -> None:
    """Write lines of tokens: sides of texts, and sources and targets of inflections."""
    for name in ("lines", "same"):
        (folder / name).write_text("a b\nb c\n")
    for name in ("dev", "same-dev", "test", "same-test"):
        (folder / name).write_text("c a\n")
    (folder / "queries").write_text("lang=german +V +PST a\nlang=german +V b\n")
    (folder / "forms").write_text("a b\nb b\n")


def write_tables(folder: Path) -> None:
    """Write tables: of words, cells, inflected forms and pairs; and the folder `languages`."""
    (folder / "words").write_text("german\ta\tV\n")
    (folder / "lemmas").write_text("a\n")
    (folder / "cells").write_text("german\tV\t1\n")
    (folder / "table").write_text("a\tab\tV\n")
    for name in ("pairs", "same-pairs"):
        (folder / name).write_text("a\tb\n")
    # Sets for development and test have no rows of training.
    (folder / "dev-pairs").write_text("aa\tb\n")
    (folder / "test-pairs").write_text("aaa\tb\n")
    (folder / "languages").mkdir()
    for name in ("german-train", "german-dev"):
        (folder / "languages" / name).write_text("a\tab\tV\n")


def write_report(folder: Path) -> None:
    """Write the report of a translation of `lines` by the model `sentences`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = "-model sentences -src lines -output out -exactness_report report -n_best 5"
        success(translate.main, words.split())
        Path("out").unlink()


def write_training(folder: Path) -> None:
    """Write the training `toy.yaml` and its corpora, whose paths are absolute."""
    write_config(folder, train_steps=1, valid_steps=1, save_checkpoint_steps=1)
