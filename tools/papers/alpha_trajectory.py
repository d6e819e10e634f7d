"""Alphas of attention heads over a training, as its log has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onmt_entmax.nn.transformer import ATTENTION_KINDS
from tools.papers.head_attention import Floats
from tools.papers.metrics import read_metrics


def read_trajectory(folder: Path) -> tuple[list[int], dict[str, Floats]] | None:
    """Return learned alphas over training, which its log has; None if it has none.

    Args:
        folder: a run folder, or the folder of a checkpoint in one.

    Returns:
        Steps, and by kind of attention alphas `(steps, layers, heads)`.

    Raises:
        UserError: the log cannot be read.
    """
    runs = [run for run in (folder, folder.parent) if (run / "metrics.jsonl").is_file()]
    if not runs:
        return None
    rows = [row for row in read_metrics(runs[0]) if row["kind"] == "alpha"]
    kinds = [kind for kind in ATTENTION_KINDS if rows and kind in rows[0]]
    if not kinds:
        return None
    alphas = {kind: np.array([row[kind] for row in rows]) for kind in kinds}
    return [row["step"] for row in rows], alphas
