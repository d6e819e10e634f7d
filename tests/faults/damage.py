"""Damage: a file of a checkpoint is changed, and every use of the checkpoint must notice."""

import shutil
from pathlib import Path
from random import Random
from typing import Literal

from onmt_entmax.checkpoint import checkpoint_steps
from tests.commands import run
from tests.faults.attacked_calls import CALLS, Outcome, bug, outputs, words

Damage = Literal["flip", "cut", "missing", "append"]


def damage(path: Path, kind: Damage, position: int, random: Random) -> None:
    """Change a file.

    Args:
        path: of the file.
        kind: one bit is flipped, the end is cut, the file is missing, or a line is appended.
        position: in bytes, of a flip or a cut.
        random: draws the bit.
    """
    content = bytearray(path.read_bytes())
    if kind == "missing":
        path.unlink()
        return
    if kind == "flip":
        content[position] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del content[position:]
    else:
        content += b"\n"
    path.write_bytes(content)


def failure_of_use(world: Path, folder: Path, model: Path, damaged: Path) -> str | None:
    """Say how a damaged model was used, in translating or to resume its training.

    Args:
        world: see `build`.
        folder: has a copy of the run.
        model: the damaged checkpoint of the copy.
        damaged: its damaged file.
    """
    is_missing = not damaged.exists()
    call = CALLS["translate"].replace("{w}/run", str(model))
    done = run("onmt_entmax", *words(call, world, folder))
    if done.returncode == 0 and damaged.name not in ("state.pt", "SHA256SUMS"):
        return "translate: used"
    if done.returncode == 0 and outputs(folder)["out"] != (world / "out").read_bytes():
        return "translate: another output"
    resume = [*words(CALLS["train"], world, folder), "-train_from", str(folder / "run")]
    resumed = run("onmt_entmax", *resume)
    failure = bug(done) or bug(resumed)
    if failure is not None or resumed.returncode != 0:
        return failure
    # Training must say that it goes on from the checkpoint before. Without one of its files, the
    # damaged checkpoint may be none to it, and nothing is said.
    *_, previous, _ = checkpoint_steps(world / "run")
    if f"step_{previous}" not in resumed.stderr and not is_missing:
        return f"train: {resumed.stderr[-200:]}"
    return None


def flips(world: Path, random: Random, folder: Path) -> Outcome:
    """Damage a file of a checkpoint; verifying, translating or resuming must notice."""
    last = checkpoint_steps(world / "run")[-1]
    model = Path(shutil.copytree(world / "run", folder / "run")) / f"step_{last}"
    path = random.choice(sorted(path for path in model.rglob("*") if path.is_file()))
    position = random.randrange(path.stat().st_size)
    kind: Damage = random.choice(["flip", "cut", "missing", "append"])
    if path.name == "SHA256SUMS" and kind == "append":
        kind = "cut"  # an empty line more is no damage
    case = f"{path.relative_to(model)}: {kind} at {position}"
    damage(path, kind, position, random)
    done = run("onmt_entmax", "verify", folder / "run")
    if done.returncode != 1 or bug(done):
        return Outcome(case, f"verify: {bug(done) or 'says nothing'}")
    return Outcome(case, failure_of_use(world, folder, model, path))
