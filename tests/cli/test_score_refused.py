"""`onmt-entmax score`: models and files that are refused, and the lines that errors name."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import pair_scores, score
from onmt_entmax.model import build_model
from tests.cli.scoring import VOCABULARIES, write_model
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.models import small_transformer, vocabularies_of


def check_refusal(folder: Path, message: str, models: Sequence[str] = ("model",)) -> None:
    """Fail unless the command prints one line with the message, and leaves nothing half-written.

    Args:
        folder: has the lines `src` and `tgt`, and the models.
        message: a part of the line.
        models: names of the models.
    """
    files = ["-src", folder / "src", "-tgt", folder / "tgt", "-output", folder / "out"]
    folders = [folder / name for name in models]
    assert message in refusal(score.main, [*files, "-model", *folders])
    assert not (folder / "out").exists()


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    check_refusal(tmp_path, "model: no such model folder")


def test_a_missing_source_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "model", 0)
    check_refusal(tmp_path, "src: cannot be read (No such file")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (["a", "b"], ["x"], "they must correspond"),
        (["a"], ["x", "y"], "they must correspond"),
        (["a", ""], ["x", "y"], ":2: the line is blank"),
    ],
    ids=["more sources", "more targets", "blank line"],
)
def test_lines_that_do_not_correspond_are_refused(
    tmp_path: Path, source: list[str], target: list[str], message: str
) -> None:
    write_model(tmp_path / "model", 0)
    write_table(tmp_path / "src", *source)
    write_table(tmp_path / "tgt", *target)
    check_refusal(tmp_path, message)


def test_models_of_different_target_vocabularies_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "model", 0)
    write_model(tmp_path / "other", 0, vocabularies_of("ab", "xyw"))
    write_table(tmp_path / "src", "a")
    write_table(tmp_path / "tgt", "x")
    check_refusal(tmp_path, "the target vocabulary of model", models=["model", "other"])


def test_an_error_has_the_number_of_the_line_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are scored in windows. Here the second one has a line that is too long.

    OpenNMT-py's Transformers have 5,000 positions.
    """
    monkeypatch.setattr(pair_scores, "WINDOW", 2)
    config = small_transformer(position_encoding=True)
    save(tmp_path / "model", build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    write_table(tmp_path / "src", "a", "b", "a", "a " * 5_002)
    write_table(tmp_path / "tgt", *["x"] * 4)
    check_refusal(tmp_path, "line 4 (5,002 tokens): is longer than a Transformer model reads")
