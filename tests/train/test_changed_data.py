"""Runs that continue with data whose tokens are not all in the vocabulary."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from tests.toy import LETTERS, write_config
from tests.train.runs import train_again


def train_and_add_tokens(folder: Path, min_frequency: int = 0, tags: int = 1) -> list[str]:
    """Train one update with the language x; then add other tokens to the first pair.

    Its source gets the language y and the tag +z, its target the token z.

    Args:
        folder: of the corpora and the run.
        min_frequency: source tokens of lower frequency are not in the vocabulary.
        tags: how often the source has the tag.

    Returns:
        The arguments of the training.
    """
    changes = {"train_steps": 1, "save_checkpoint_steps": 1, "valid_steps": 1, "rnn_size": 8}
    config = write_config(folder, src_words_min_frequency=min_frequency, **changes)
    arguments = ["-config", str(config)]
    source, target = folder / "train.src", folder / "train.tgt"
    _, *lines = source.read_text().splitlines(keepends=True)
    others = "".join(f"lang=x {line}" for line in lines)
    source.write_text(f"lang=x a\n{others}")

    assert train(arguments) == 0

    source.write_text(f"lang=y {'+z ' * tags}a\n{others}")
    target.write_text(f"z {target.read_text()}")
    return arguments


@pytest.mark.parametrize(
    ("min_frequency", "tags", "tokens"),
    [
        pytest.param(0, 1, "'lang=y', '+z'", id="all tokens"),
        pytest.param(2, 1, "'lang=y'", id="the language, but not a rare tag"),
        pytest.param(2, 99, "'+z' (99), 'lang=y'", id="a tag that is frequent"),
    ],
)
def test_new_tokens_of_the_data_are_warned_of(
    min_frequency: int,
    tags: int,
    tokens: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A resumed run keeps its vocabulary, which may lack rare tokens on purpose."""
    arguments = train_and_add_tokens(tmp_path, min_frequency, tags)
    assert "only a new run" not in capsys.readouterr().err
    assert train_again(arguments, "-train_from", tmp_path / "run") == 0
    printed = capsys.readouterr().err
    assert f" source tokens of the training data: {tokens}; only a new run" in printed
    assert " target tokens of the training data: 'z'; only a new run" in printed


def test_a_language_that_is_not_in_the_vocabulary_is_not_recorded(tmp_path: Path) -> None:
    arguments = train_and_add_tokens(tmp_path)
    assert train_again(arguments, "-train_from", tmp_path / "run", "-train_steps", 2) == 0
    seen = load(tmp_path / "run" / "step_2").vocabularies.source.seen
    assert seen == {"lang=x": frozenset(LETTERS)}


def test_damaged_cells_are_counted_again_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are derived from the data."""
    arguments = train_and_add_tokens(tmp_path)
    (tmp_path / "run" / "step_1" / "cells.tsv").write_text("damaged")
    assert train_again(arguments, "-train_from", tmp_path / "run") == 0
    assert "cells.tsv: its content is not what was written" in capsys.readouterr().err
