"""Runs that continue with data whose tokens are not all in the vocabulary."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from tests.toy import LETTERS, TRAINING_PAIRS, write_config
from tests.train.runs import train_again


def train_on_language_x(folder: Path, min_frequency: int = 0) -> list[str]:
    """Train one update on pairs of the language x and the tag v; return the arguments.

    Args:
        folder: of the corpora and the run.
        min_frequency: source tokens of lower frequency are not in the vocabulary.
    """
    config = write_config(
        folder, train_steps=1, save_checkpoint_steps=1, valid_steps=1, rnn_size=8,
        src_words_min_frequency=min_frequency,
    )  # fmt: skip
    source = folder / "train.src"
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join(f"lang=x +v {line}" for line in lines))
    arguments = ["-config", str(config)]
    assert train(arguments) == 0
    return arguments


def add_training_pair(folder: Path, source: str, target: str) -> None:
    with (folder / "train.src").open("a") as sources, (folder / "train.tgt").open("a") as targets:
        sources.write(f"{source}\n")
        targets.write(f"{target}\n")


@pytest.mark.parametrize(
    ("min_frequency", "source", "new_tokens"),
    [
        pytest.param(0, "lang=y +z a", "'lang=y', '+z'", id="all tokens"),
        pytest.param(2, "lang=y +z a", "'lang=y'", id="the language, but not a rare tag"),
        pytest.param(
            2, f"lang=y {99 * '+z '}a", "'+z' (99), 'lang=y'", id="a tag that is frequent"
        ),
    ],
)
def test_new_tokens_of_the_data_are_warned_of(
    min_frequency: int,
    source: str,
    new_tokens: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A resumed run keeps its vocabulary, which may lack rare tokens on purpose."""
    arguments = train_on_language_x(tmp_path, min_frequency)
    assert "only a new run" not in capsys.readouterr().err
    add_training_pair(tmp_path, source, "z a")
    assert train_again(arguments, "-train_from", tmp_path / "run") == 0
    printed = capsys.readouterr().err
    assert f" source tokens of the training data: {new_tokens}; only a new run" in printed
    assert " target tokens of the training data: 'z'; only a new run" in printed


def test_a_language_that_is_not_in_the_vocabulary_is_not_recorded(tmp_path: Path) -> None:
    arguments = train_on_language_x(tmp_path)
    add_training_pair(tmp_path, "lang=y a", "a")
    assert train_again(arguments, "-train_from", tmp_path / "run", "-train_steps", 2) == 0
    seen = load(tmp_path / "run" / "step_2").vocabularies.source.seen
    assert seen == {"lang=x": frozenset(["+v", *LETTERS])}


def test_damaged_cells_are_counted_again_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are derived from the data."""
    arguments = train_on_language_x(tmp_path)
    cells = tmp_path / "run" / "step_1" / "cells.tsv"
    written = cells.read_text()
    assert written == f"x\tv\t{TRAINING_PAIRS}\n"
    cells.write_text("damaged")
    assert train_again(arguments, "-train_from", tmp_path / "run", "-train_steps", 2) == 0
    assert "cells.tsv: its content is not what was written" in capsys.readouterr().err
    assert (tmp_path / "run" / "step_2" / "cells.tsv").read_text() == written
