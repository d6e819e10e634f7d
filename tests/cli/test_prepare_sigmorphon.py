"""`onmt-entmax prepare sigmorphon`: the files that it makes of the samples."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import decode_word
from tests.cli.preparing import read_lines
from tests.cli.sigmorphon import SAMPLES, run_prepare_sigmorphon
from tests.commands import run

# Beginnings of the SHA-256 checksums of the files that `--data data/samples` gives.
HASHES = {
    "dev.src": "ab6004420ac536f0",
    "dev.tgt": "368763ca2128c823",
    "train.src": "d922f8435399e24e",
    "train.tgt": "18df98536e3584a8",
}


class Row(NamedTuple):
    """A row of a table."""

    language: str
    lemma: str
    form: str
    tags: str


def sample_rows(split: str) -> list[Row]:
    """Return the rows of the samples, in order."""
    return [
        Row(language, *line.split("\t"))
        for language in ("english", "german", "spanish", "turkish")
        for line in read_lines(SAMPLES / f"{language}-{split}")
    ]


def decoded_rows(folder: Path, split: str) -> list[Row]:
    """Return the rows that the written tokens stand for, in order."""
    sources, targets = (read_lines(folder / f"{split}.{side}") for side in ("src", "tgt"))
    return [decoded_row(*pair) for pair in zip(sources, targets, strict=True)]


def decoded_row(source: str, target: str) -> Row:
    """Return the row of a line of tokens: language, tags with a plus, and letters."""
    language, *tokens = source.split()
    tags = [token[1:] for token in tokens if len(token) > 1 and token[0] == "+"]
    return Row(
        language=language.removeprefix("lang="),
        lemma=decode_word(tokens[len(tags) :]),
        form=decode_word(target.split()),
        tags=";".join(tags),
    )


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the real command makes of the samples."""
    folder = tmp_path_factory.mktemp("samples")
    done = run("onmt_entmax", "prepare", "sigmorphon", "--data", SAMPLES, "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "460 rows, 4 languages" in done.stdout
    return folder


def test_every_development_row_can_be_read_back_in_order(samples: Path) -> None:
    assert decoded_rows(samples, "dev") == sample_rows("dev")


def test_every_training_row_can_be_read_back(samples: Path) -> None:
    assert sorted(decoded_rows(samples, "train")) == sorted(sample_rows("train"))


def test_training_rows_of_all_languages_are_mixed(samples: Path) -> None:
    """Training may hold a part of the rows at a time, which is to have all languages."""
    languages = {row.language for row in sample_rows("train")}
    assert {row.language for row in decoded_rows(samples, "train")[:40]} == languages


def test_the_files_are_those_of_the_first_release(samples: Path) -> None:
    """Later releases must write the same ones: results and models were made with them."""
    contents = {path.name: path.read_bytes() for path in samples.iterdir()}
    del contents["train.yaml"]
    hashes = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in contents.items()}
    assert hashes == HASHES


# --- the direction ---


@pytest.fixture(scope="module")
def right_to_left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples, prepared with `--right_to_left`."""
    folder = tmp_path_factory.mktemp("right-to-left")
    run_prepare_sigmorphon("--data", SAMPLES, "--right_to_left", "--out", folder)
    return folder


@pytest.mark.parametrize("name", HASHES)
def test_a_right_to_left_model_reads_the_same_files(
    samples: Path, right_to_left: Path, name: str
) -> None:
    assert (right_to_left / name).read_bytes() == (samples / name).read_bytes()


def task_of(folder: Path) -> StringTask:
    """Return the task of the configuration in a folder."""
    return training_setup(["-config", str(folder / "train.yaml")]).data.task


def test_a_model_writes_from_left_to_right_by_default(samples: Path) -> None:
    assert not task_of(samples).right_to_left


def test_a_right_to_left_model_is_configured(right_to_left: Path) -> None:
    assert task_of(right_to_left).right_to_left


def test_the_direction_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", SAMPLES, "--languages", "turkish"]
    run_prepare_sigmorphon(*data, "--right_to_left", "--out", tmp_path)
    note = "target_order: right_to_left; the files stay in natural order"
    assert note in capsys.readouterr().out
