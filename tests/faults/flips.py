"""Damage in every file of a model folder and a run folder: noticed, never a silent difference.

A case damages one file of the newest checkpoint, or of the run, and then calls a command.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from onmt_entmax.checksums import LIST_NAME
from onmt_entmax.cli.main import COMMANDS
from tests.commands import weights
from tests.faults.attack import Attack, once
from tests.faults.running import Ended, attempt
from tests.faults.world import SAVED, STEPS, World, must

DAMAGES = ("flip", "flip", "flip", "cut", "append", "zeros", "other step", "missing")
USES = ("translate", "resume", "verify")
LAST = STEPS + SAVED  # where a resumed training ends


@dataclass(frozen=True)
class Case:
    """Damage to a file, and the command that uses the run afterwards."""

    file: str
    damage: str
    where: float  # place in the file, from 0 to 1
    bit: int
    use: str

    def __str__(self) -> str:
        return f"{self.file}: {self.damage} at {self.where:.4f} bit {self.bit}, then {self.use}"


def files(world: World) -> list[str]:
    """Return the files to damage, from the run folder."""
    paths = [*(world.run / f"step_{STEPS}").rglob("*"), *world.run.glob("*.json*")]
    return sorted(str(path.relative_to(world.run)) for path in paths if path.is_file())


def draw(world: World, generator: Random) -> Case:
    """Draw a file, a damage and a use; small files as often as large ones."""
    uses = [use for use in USES if use != "verify" or "verify" in COMMANDS]
    return Case(
        generator.choice(files(world)),
        generator.choice(DAMAGES),
        generator.random(),
        generator.randrange(8),
        generator.choice(uses),
    )


def damaged(run: Path, case: Case) -> bool:
    """Damage a file; return whether its content has changed."""
    path = run / case.file
    before = path.read_bytes()
    place = min(int(case.where * len(before)), len(before) - 1)
    content = bytearray(before)
    if case.damage == "missing":
        path.unlink()
        return True
    if case.damage == "flip":
        content[place] ^= 1 << case.bit
    elif case.damage == "cut":
        del content[place:]
    elif case.damage == "append":
        content += before[place:] or b"\n"
    elif case.damage == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    else:
        other = run / case.file.replace(f"step_{STEPS}", f"step_{STEPS - SAVED}")
        content = bytearray(other.read_bytes())
    path.write_bytes(content)
    return bytes(content) != before


def _translate(world: World, model: Path, place: Path) -> Ended:
    call = ["-model", model, "-src", world.folder / "valid.src", "-output", "out", "-max_length", 8]
    return attempt(["translate", *call, "-exactness_report", "out.jsonl"], place)


def _resume(world: World, run: Path, place: Path) -> Ended:
    call = ["-config", world.folder / "toy.yaml", "-save_model", run, "-train_from", run]
    return attempt(["train", *call, "-train_steps", LAST], place)


@once
def undisturbed(world: World) -> tuple[dict[str, bytes], dict]:
    """Return the translation of each model, and the weights of a resumed training."""
    place = world.folder.parent / "unflipped"
    shutil.copytree(world.run, place / "run")
    found = {}
    for name in (f"step_{STEPS}", "."):
        must(_translate(world, place / "run" / name, place))
        found[name] = (place / "out.jsonl").read_bytes()
    must(_resume(world, place / "run", place))
    return found, weights(place / "run", LAST)


def check(world: World, case: Case, place: Path) -> str | None:
    """Damage a copy of the run and use it."""
    translations, final = undisturbed(world)
    run = place / "run"
    shutil.copytree(world.run, run)
    changed = damaged(run, case)
    step = case.file.startswith("step_")
    if case.use == "verify":
        ended = attempt(["verify", run / f"step_{STEPS}" if step else run], place)
        listed = step or case.file == "best.json"
        if changed and listed and ended.status == 0:
            return "verify says nothing"
        if not changed and ended.status != 0:
            return f"verify complains of a good folder: {ended.line}"
        # A wrong list of checksums may accuse another file.
        blamed = [Path(case.file).name, *(["checksum"] if case.file.endswith(LIST_NAME) else [])]
        named = any(name in ended.line for name in blamed)
        if step and ended.status not in (0, None) and not named:
            return f"verify does not name the file: {ended.line}"
        return ended.bug()
    if case.use == "translate":
        model = f"step_{STEPS}" if step else "."
        ended = _translate(world, run / model, place)
        if ended.status == 0 and (place / "out.jsonl").read_bytes() != translations[model]:
            return "translates without a word, and otherwise"
        return ended.bug()
    ended = _resume(world, run, place)
    if ended.bug() or ended.status != 0:
        return f"does not resume: {ended.bug() or ended.line}"
    found = weights(run, LAST)
    if found.keys() != final.keys() or not all(found[k].equal(final[k]) for k in final):
        return "resumes without a word, and ends elsewhere"
    return None


FLIPS = Attack("flips", draw, check)
