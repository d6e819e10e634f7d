"""Attacks on the commands: each draws a case, tries it in an empty folder, and says what fails.

Nothing may be lost or let in: after a kill, a signal or a full disk, outputs are the old or the
whole new ones, and the same call gives the same; damage and nonsense end in one line.
"""

import functools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.faults.attacked_calls import Outcome
from tests.faults.damage import damage_checkpoint
from tests.faults.interruptions import interrupt
from tests.faults.nonsense import folders, inputs

Attack = Callable[[Path, Random, Path], Outcome]
"""Draws a case and tries it: of the folder that `build` made, and an empty one for outputs."""

ATTACKS: Mapping[str, Attack] = {
    "kills": functools.partial(interrupt, ("SIGKILL",)),
    "signals": functools.partial(interrupt, ("SIGINT", "SIGTERM", "SIGHUP")),
    "disk": functools.partial(interrupt, ("full disk",)),
    "damage": damage_checkpoint,
    "folders": folders,
    "inputs": inputs,
}


def try_case(name: str, world: Path, seed: int) -> Outcome:
    """Try a case of an attack: the same for the same seed."""
    folder = world.parent / f"{name}-{seed}"
    folder.mkdir()
    try:
        return ATTACKS[name](world, Random(f"{name}-{seed}"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
