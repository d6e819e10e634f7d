"""Which checkpoints of a run folder are kept: the best one, which has a name, and the newest."""

import secrets
from pathlib import Path

from onmt_entmax.checkpoint import best_step, checkpoint_steps
from onmt_entmax.files import json_line, naming, remove, write_text


def remember_best(run: Path, step: int, metric: str, value: float) -> None:
    """Write `best.json`, which names the best checkpoint of a run.

    Args:
        run: the run folder.
        step: number of the checkpoint.
        metric: the measure that chose it, such as `loss`.
        value: its value.

    Raises:
        FileError: it cannot be written.
    """
    content = {"step": step, "metric": metric, "value": value}
    write_text(run / "best.json", json_line(content))


def prune(run: Path, keep: int, newest: int) -> None:
    """Delete old checkpoints of a run.

    Args:
        run: the run folder.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all.
        newest: current step of the run. Checkpoints with larger numbers are damaged ones that a
            resumed run skipped; they are ignored.

    Raises:
        FileError: one cannot be deleted.
    """
    if keep < 0:
        return
    steps = [step for step in checkpoint_steps(run) if step <= newest]
    old = steps[: max(len(steps) - keep, 0)]
    best = best_step(run)
    for step in old:
        if step != best:
            remove_checkpoint(run, step)


def remove_checkpoint(run: Path, step: int) -> None:
    """Delete a checkpoint; if it is a link, delete the link only.

    Args:
        run: the run folder.
        step: number of the checkpoint.

    Raises:
        FileError: it cannot be deleted.
    """
    # Renamed first, so that readers never find a part of it.
    hidden = run / f".step_{step}.{secrets.token_hex(8)}.tmp"
    checkpoint = run / f"step_{step}"
    with naming(checkpoint, "deleted"):
        checkpoint.rename(hidden)
    remove(hidden)
