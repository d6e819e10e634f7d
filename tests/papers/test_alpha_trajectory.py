"""The learned alphas in a training's log."""

from pathlib import Path

from tools.papers.alpha_trajectory import read_trajectory


def test_a_log_without_alphas_of_attention_has_no_trajectory(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "alpha", "step": 1, "other": [[1.1]]}\n')
    assert read_trajectory(tmp_path) is None
