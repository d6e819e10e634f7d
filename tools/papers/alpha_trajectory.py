"""Alphas of attention heads over a training, read from its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onmt_entmax.nn.transformer import ATTENTION_KINDS
from tools.papers.head_attention import Floats
from tools.papers.metrics import read_metrics


class Trajectory(NamedTuple):
    """Learned alphas over a training.

    Attributes:
        steps: training steps at which they were recorded.
        alphas: `(steps, layers, heads)` by kind of attention, for each kind that learns its alphas.
    """

    steps: Sequence[int]
    alphas: Mapping[str, Floats]


def read_trajectory(folder: Path) -> Trajectory | None:
    """Return the learned alphas in the log of a training; None if it has none.

    Args:
        folder: a run folder, or the folder of a checkpoint in one.

    Raises:
        UserError: the log cannot be read.
    """
    runs = [run for run in (folder, folder.parent) if (run / "metrics.jsonl").is_file()]
    if not runs:
        return None
    rows = [row for row in read_metrics(runs[0]) if row["kind"] == "alpha"]
    # All rows have the kinds of the first: which alphas are learned does not change.
    kinds = [kind for kind in ATTENTION_KINDS if rows and kind in rows[0]]
    if not kinds:
        return None
    alphas = {kind: np.array([row[kind] for row in rows]) for kind in kinds}
    return Trajectory([row["step"] for row in rows], alphas)
