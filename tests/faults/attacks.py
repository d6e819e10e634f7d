"""All classes of attacks."""

from tests.faults.attack import Attack
from tests.faults.flips import FLIPS
from tests.faults.folders import FOLDERS
from tests.faults.inputs import INPUTS
from tests.faults.writes import DISK, KILLS, SIGNALLED

ATTACKS: dict[str, Attack] = {
    attack.name: attack for attack in (KILLS, FLIPS, FOLDERS, INPUTS, SIGNALLED, DISK)
}
