"""`translate`: models, sources and lengths that it refuses."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import translate as command
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from tests.cli.translating import arguments_of
from tests.in_process import refusal
from tests.models import VOCABULARIES, small_transformer


def error_of(arguments: Sequence[object]) -> str:
    """Return the one-line error of a call, before which notes may come."""
    return refusal(command.main, arguments, progress=True)


def test_an_ensemble_of_different_vocabularies_is_refused(toy_run: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(toy_run / "step_400", tmp_path / "model"))
    tokens = json.loads((changed / "vocab.json").read_text())
    tokens["target"][-1] = "Q"
    (changed / "vocab.json").write_text(json.dumps(tokens))
    write_list(changed)
    option, first, *others = arguments_of(toy_run, tmp_path)
    message = error_of([option, first, changed, *others])
    assert "the target vocabulary of model 2 has 'Q', that of model 1 has not" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"a b\n\xff\xfe\n", ":2: not UTF-8 text")],
    ids=["empty", "no text"],
)
def test_a_source_that_is_not_text_is_refused(
    toy_run: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    arguments = arguments_of(toy_run, tmp_path)
    (tmp_path / "in").write_bytes(content)
    assert message in error_of(arguments)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def transformer(tmp_path: Path) -> Path:
    """The folder of a Transformer, which has positions for 5,000 tokens."""
    config = small_transformer(position_encoding=True)
    folder = tmp_path / "transformer"
    save(folder, build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folder


@pytest.mark.parametrize("search", ["beam", "enumerate"])
def test_a_line_too_long_for_a_transformer_is_named(
    transformer: Path, tmp_path: Path, search: str
) -> None:
    arguments = arguments_of(transformer, tmp_path, "a b\n" + "a " * 10_000 + "\n")
    message = error_of([*arguments, "-search", search])
    assert "line 2 (10,000 tokens): is longer than a Transformer" in message


def test_a_least_length_above_the_largest_is_refused(toy_run: Path, tmp_path: Path) -> None:
    arguments = arguments_of(toy_run, tmp_path)
    message = error_of([*arguments, "-min_length", 5, "-max_length", 3])
    assert "min_length: is above max_length, 3" in message
    assert not (tmp_path / "out").exists()
