"""The folder of a run while it trains: checkpoints are written there, and old ones deleted."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import best_step, checkpoint_steps, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel

# Temporary names that a killed run may leave: see `write_folder` and `Log`.
_LEFTOVER = re.compile(
    r"\.step_\d+(\.[0-9a-f]+\.tmp|\.old)"
    r"|\.(best\.json|metrics\.jsonl)\.[0-9a-f]+\.tmp"
)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and what each of its checkpoints records."""

    path: Path
    config: ModelConfig
    vocabularies: Vocabularies
    options: Mapping[str, Any]
    keep: int = -1  # newest checkpoints to keep besides the best; negative: all
    others: Mapping[str, bytes] | None = None  # further files by name

    def save(self, step: int, model: SparseNMTModel, state: Mapping[str, Any]) -> None:
        """Write checkpoint `step` and delete old ones."""
        folder = self.path / f"step_{step}"
        save(folder, model, self.config, self.vocabularies, self.options, state, self.others)
        prune(self.path, self.keep, step)


def remove_leftovers(run: Path) -> None:
    """Delete the temporary files of a killed run; restore a checkpoint that it was replacing."""
    for path in run.iterdir() if run.is_dir() else ():
        if not _LEFTOVER.fullmatch(path.name):
            continue
        if path.suffix == ".old" and not (named := path.with_name(path.stem[1:])).exists():
            path.rename(named)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def prune(run: Path, keep: int, newest: int) -> None:
    """Delete old checkpoints of a run.

    Args:
        run: the run folder.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all.
        newest: current step of the run. Checkpoints with larger numbers are damaged ones that a
            resumed run skipped; they are ignored.
    """
    if keep < 0:
        return
    steps = [step for step in checkpoint_steps(run) if step <= newest]
    kept = {*steps[max(len(steps) - keep, 0) :], best_step(run)}
    for step in steps:
        if step not in kept:
            remove_checkpoint(run, step)


def remove_checkpoint(run: Path, step: int) -> None:
    """Delete a checkpoint, of a link only the link; readers find it whole or not at all."""
    hidden = run / f".step_{step}.{secrets.token_hex(8)}.tmp"
    (run / f"step_{step}").rename(hidden)
    if hidden.is_symlink():
        hidden.unlink()
    else:
        shutil.rmtree(hidden)


def clear(folder: Path, step: int) -> None:
    """Delete what an earlier run wrote after `step`; `Log` cuts the measurements."""
    best = best_step(folder)
    if best is not None and best > step:
        (folder / "best.json").unlink()
    for later in checkpoint_steps(folder):
        if later > step:
            remove_checkpoint(folder, later)
    if step == 0:
        # best.json is still there if it is damaged.
        for name in ("best.json", "metrics.jsonl"):
            (folder / name).unlink(missing_ok=True)
