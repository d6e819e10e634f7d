"""Find the model folder that a path stands for: the path itself, or a checkpoint of a run folder.

If there is none, the error has a hint at what the user may have meant.
"""

import math
import re
import shlex
import warnings
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.checkpoint.contents import (
    CONFIG,
    LARGEST_TEXT,
    CheckpointError,
    as_checkpoint_error,
)
from onmt_entmax.files import read_bytes
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.rules import Rule, whole

# Fields of `best.json`, with their rules; the value is null if it was not finite.
_FIELDS_OF_BEST = {"step": whole(0, 10**12), "metric": Rule(str), "value": Rule(float, off=None)}


class Best(NamedTuple):
    """The best checkpoint of a run.

    Attributes:
        step: updates after which it was saved.
        metric: the measure that chose it, such as `loss`.
        value: what this measure was; nan if it was not finite.
    """

    step: int
    metric: str
    value: float


def checkpoint_steps(run: Path) -> list[int]:
    """Return the steps of the checkpoints in a run folder, oldest first."""
    names = [path.name for path in run.iterdir()] if run.is_dir() else []
    matches = [re.fullmatch(r"step_(0|[1-9][0-9]*)", name) for name in names]
    return sorted(int(match[1]) for match in matches if match is not None)


def read_best(run: Path) -> Best | None:
    """Return what `best.json` says; None if there is no such file.

    Raises:
        CheckpointError: it is damaged.
    """
    path = run / "best.json"
    if not path.exists():
        return None
    with as_checkpoint_error(path):
        content = parse_json(read_bytes(path, LARGEST_TEXT).decode("utf-8"))
    if not isinstance(content, dict) or not all(
        name in content and rule.fits(content[name]) for name, rule in _FIELDS_OF_BEST.items()
    ):
        raise CheckpointError(f"{path}: damaged; name a checkpoint instead, such as {run}/step_N")
    value = math.nan if content["value"] is None else content["value"]
    return Best(content["step"], content["metric"], value)


def best_step(run: Path) -> int | None:
    """Return the step in `best.json`; None if the file is missing or damaged."""
    try:
        best = read_best(run)
    except CheckpointError:
        return None
    return None if best is None else best.step


def find_model(path: Path) -> Path:
    """Return the model folder that a path stands for.

    It is the first of these that exists:

    1. the path itself;
    2. the best checkpoint of a run folder, or the newest, with a warning, if only a part of the run
       was copied here and the best is not in it;
    3. the folder into which `import-onmt` converted the file at this path.

    Raises:
        CheckpointError: if there is no model, or `best.json` is damaged.
    """
    if (path / CONFIG).is_file():
        return path
    steps = checkpoint_steps(path)
    if steps:
        return path / f"step_{_best_or_newest(path, steps)}"
    imported = _imported(path)
    if imported is not None:
        return imported
    raise CheckpointError(f"{path}: {_why_no_model(path)}")


def _best_or_newest(run: Path, steps: list[int]) -> int:
    """Return the step of the checkpoint of a run that commands use.

    Args:
        run: the run folder.
        steps: the steps of its checkpoints, at least one, oldest first.
    """
    best = read_best(run)
    if best is None:
        return steps[-1]
    if best.step in steps:
        return best.step
    warnings.warn(
        f"{run / 'best.json'}: names step_{best.step}, which is not there; the newest "
        f"checkpoint is taken instead, step_{steps[-1]}",
        stacklevel=3,
    )
    return steps[-1]


def _why_no_model(path: Path) -> str:
    """Return why a path is neither a model folder nor a run folder, and what to do."""
    if not path.exists():
        return f"no such model folder{_hint_for_stock_name(path)}"
    if path.is_file():
        folder = path.with_suffix("")
        if folder.exists():
            folder = folder.with_name(f"{path.name}.imported")
        command = shlex.join(["onmt-entmax", "import-onmt", str(path), str(folder)])
        return f"a file, and models are folders; convert a checkpoint of OpenNMT-py: {command}"
    return f"not a model folder (it has neither config.yaml nor step_N){_hint_at_inner(path)}"


def _hint_for_stock_name(path: Path) -> str:
    """Return a hint for a name such as OpenNMT-py's `model_step_1000.pt`: `model/step_1000`."""
    name = re.fullmatch(r"(.+)_(step_\d+)(\.pt)?", path.name)
    if name is None:
        return ""
    folder = path.with_name(name[1]) / name[2]
    return f"; did you mean {folder}?" if folder.is_dir() else ""


def _hint_at_inner(path: Path) -> str:
    """Return a hint at a model or run inside a folder, if there is one."""
    inside = {model.parent for model in (*path.glob("*/config.yaml"), *path.glob("*/step_*"))}
    if not inside:
        return ""
    usual = path / "model"  # where `prepare` lets a run write it
    return f"; did you mean {usual if usual in inside else min(inside)}?"


def _imported(path: Path) -> Path | None:
    """Return the folder that `import-onmt` made of a file; None if the file is newer."""
    if not path.is_file():
        return None
    folder = path.with_suffix("")
    config = folder / CONFIG
    if config.is_file() and config.stat().st_mtime >= path.stat().st_mtime:
        return folder
    return None
