"""The learned alphas in a training's log."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tools.papers.alpha_trajectory import read_trajectory


def write_log(run: Path, *rows: Mapping[str, object]) -> None:
    run.mkdir()
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("folder", ["run", "run/step_20"])
def test_alphas_of_a_run_are_read_by_step_layer_and_head(tmp_path: Path, folder: str) -> None:
    """The folder is that of the run, or that of a checkpoint in it."""
    write_log(
        tmp_path / "run",
        {"kind": "alpha", "step": 10, "context": [[1.1, 1.2], [1.3, 1.4]]},
        {"kind": "train", "step": 15, "loss": 1.0},
        {"kind": "alpha", "step": 20, "context": [[1.5, 1.6], [1.7, 1.8]]},
    )
    trajectory = read_trajectory(tmp_path / folder)
    assert trajectory is not None
    assert trajectory.steps == [10, 20]
    expected = [[[1.1, 1.2], [1.3, 1.4]], [[1.5, 1.6], [1.7, 1.8]]]
    assert [*trajectory.alphas] == ["context"]
    np.testing.assert_array_equal(trajectory.alphas["context"], expected)


def test_a_log_without_alphas_of_attention_has_no_trajectory(tmp_path: Path) -> None:
    write_log(tmp_path / "run", {"kind": "alpha", "step": 1, "other": [[1.1]]})
    assert read_trajectory(tmp_path / "run") is None


def test_a_model_without_a_log_has_no_trajectory(tmp_path: Path) -> None:
    assert read_trajectory(tmp_path) is None
