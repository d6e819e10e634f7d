"""Attacks on the commands: each draws a case, tries it in an empty folder, and says what fails.

Nothing may be lost or let in: after a kill, a signal or a full disk, outputs are the old or the
whole new ones, and the same call gives the same; damage and nonsense end in one line.
"""

import functools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.faults.attacked_calls import TriedCase
from tests.faults.damage import damage_checkpoint
from tests.faults.interrupted_calls import interrupt
from tests.faults.nonsense_folders import spoil_model_folder
from tests.faults.nonsense_inputs import spoil_input

Attack = Callable[[Path, Random, Path], TriedCase]
"""Draws a case and tries it.

It takes the folder that `attacked_calls.build` made, a random generator, and an empty folder for
outputs.
"""

ATTACKS: Mapping[str, Attack] = {
    "kills": functools.partial(interrupt, ("SIGKILL",)),
    "signals": functools.partial(interrupt, ("SIGINT", "SIGTERM", "SIGHUP")),
    "disk": functools.partial(interrupt, ("full disk",)),
    "damage": damage_checkpoint,
    "folders": spoil_model_folder,
    "inputs": spoil_input,
}


def try_case(name: str, world: Path, seed: int) -> TriedCase:
    """Try a case of an attack: the same for the same seed."""
    folder = world.parent / f"{name}-{seed}"
    folder.mkdir()
    try:
        return ATTACKS[name](world, Random(f"{name}-{seed}"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
