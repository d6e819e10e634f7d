"""Damage: a file of a checkpoint is changed, and every use of the checkpoint must notice."""

import re
import shutil
from pathlib import Path
from random import Random
from typing import Literal, get_args

from onmt_entmax.checkpoint import STATE, checkpoint_steps
from onmt_entmax.files.checksums import LIST_NAME
from tests.commands import run
from tests.faults.attacked_calls import TriedCase, arguments_of, bug, outputs

Kind = Literal["flip", "cut", "missing", "append"]

# Translating reads no training state, and of the list of checksums no line about it. It may succeed
# although they are damaged, but then its output is that of the undamaged checkpoint.
_NOT_TRANSLATED = (STATE, LIST_NAME)


def damage(path: Path, kind: Kind, position: int, random: Random) -> None:
    """Damage a file.

    Args:
        path: path of the file.
        kind: flip a bit, cut the end off, remove the file, or append an empty line.
        position: byte in which a bit is flipped, or from which on the end is cut off.
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


def failure_of_verifying(damaged_run: Path) -> str | None:
    """Return how `verify` accepted a damaged run; None if it noticed."""
    done = run("onmt_entmax", "verify", damaged_run)
    if (failure := bug(done)) is not None:
        return f"verify: {failure}"
    return "verify: says nothing" if done.returncode != 1 else None


def failure_of_translating(world: Path, folder: Path, model: Path, name: str) -> str | None:
    """Return how a damaged checkpoint was used to translate; None if it was refused or harmless.

    Args:
        world: the folder that `attacked_calls.build` made.
        folder: of the output.
        model: the checkpoint.
        name: of its damaged file, relative to it.
    """
    done = run("onmt_entmax", *arguments_of("translate", world, folder, model))
    if done.returncode != 0:
        return bug(done)
    if name not in _NOT_TRANSLATED:
        return "translate: used"
    if outputs(folder)["out"] != (world / "out").read_bytes():
        return "translate: another output"
    return bug(done)


def failure_of_resuming(world: Path, folder: Path, *, is_missing: bool) -> str | None:
    """Return how a training wrongly resumed from a run whose last checkpoint is damaged, or None.

    It may be refused, in one clear line. Otherwise it must say that it goes on from the checkpoint
    before. If a file is missing, it need not say so, as the folder may not look like a checkpoint.

    Args:
        world: the folder that `attacked_calls.build` made.
        folder: has the run, a damaged copy of that in `world`.
        is_missing: whether the damaged file is missing.
    """
    resume = [*arguments_of("train", world, folder), "-train_from", str(folder / "run")]
    done = run("onmt_entmax", *resume)
    failure = bug(done)
    was_refused = done.returncode != 0
    if failure is not None or was_refused or is_missing:
        return failure
    *_, previous, _ = checkpoint_steps(world / "run")
    if not re.search(rf"\bstep_{previous}\b", done.stderr):
        return f"train: {done.stderr[-200:]}"
    return None


def damage_checkpoint(world: Path, random: Random, folder: Path) -> TriedCase:
    """Damage a file of a run's last checkpoint; verifying, translating and resuming must notice."""
    last = checkpoint_steps(world / "run")[-1]
    damaged_run = Path(shutil.copytree(world / "run", folder / "run"))
    model = damaged_run / f"step_{last}"
    # An empty file has no byte to flip, and no end to cut.
    files = [path for path in model.rglob("*") if path.is_file() and path.stat().st_size]
    path = random.choice(sorted(files))
    name = path.relative_to(model).as_posix()
    position = random.randrange(path.stat().st_size)
    kind: Kind = random.choice(get_args(Kind))
    if name == LIST_NAME and kind == "append":
        kind = "cut"  # another empty line does no harm; in other files it changes their checksum
    damage(path, kind, position, random)
    failure = (
        failure_of_verifying(damaged_run)
        or failure_of_translating(world, folder, model, name)
        or failure_of_resuming(world, folder, is_missing=kind == "missing")
    )
    where = f" at byte {position}" if kind in ("flip", "cut") else ""
    return TriedCase(f"{name}: {kind}{where}", failure)
