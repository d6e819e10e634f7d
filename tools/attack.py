"""Attack the commands with kills, damage, hostile folders and bad inputs, for a given time.

    python -m tools.attack --minutes 30 --seed 1
    python -m tools.attack --replay damage:1000017

Each case follows from a seed:

    kills         the process is killed
    signals       SIGINT, SIGTERM or SIGHUP arrives
    disk          the disk is full
    damage        a file of a run is damaged
    folders       a model folder is hostile
    inputs        an option or a file is bad
    certificates  random models are searched, and the results are compared with enumeration

A failure is printed with the --replay that repeats it. The exit status is 1 if a case failed. The
tests in `tests/faults` try a few of the same cases.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.ending import argument_parser, run_script
from tests.faults.attacked_calls import TriedCase, build
from tests.faults.attacks import ATTACKS, try_case
from tests.faults.certificates import CHECKS
from tests.faults.runner import check_models
from tests.shared_server import offer_server

CERTIFICATES = "certificates"
NAMES = (*ATTACKS, CERTIFICATES)
MODELS = 100  # random models in a case of certificates
MEMORY = 8 << 30  # bytes that a process may take; a case that needs more fails


class Case(NamedTuple):
    """A case of an attack. Its text is the value of `--replay` that repeats it."""

    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}:{self.seed}"


def main(arguments: Sequence[str]) -> int:
    """Attack; return the exit status."""
    options = parse_arguments(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    offer_server()
    tried, failed = Counter[str](), Counter[str]()  # numbers of cases by attack
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        world = Path(folder).resolve() / "world"
        world.mkdir()
        build(world)
        for case in cases(options):
            tried_case = attempt(case, world)
            tried[case.name] += 1
            if tried_case.failure is not None:
                failed[case.name] += 1
                print(
                    f"--replay {case}\n    {tried_case.case}\n    {tried_case.failure}", flush=True
                )
    for name in tried:
        print(f"{name:14}{tried[name]:8} cases{failed[name]:8} failed")
    return 1 if failed else 0


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `replay` becomes a `Case` or None."""
    parser = argument_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="default 1")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="default all")
    parser.add_argument("--replay", metavar="NAME:SEED", help="try one case again")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        match = re.fullmatch(rf"({'|'.join(NAMES)}):(-?\d+)", options.replay)
        if match is None:
            parser.error(f"--replay: expected NAME:SEED, not {options.replay!r}")
        options.replay = Case(match[1], int(match[2]))
    return options


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the case of `--replay`, or else cases of each attack in turn until the time is over."""
    if options.replay is not None:
        yield options.replay
        return
    end = time.monotonic() + 60 * options.minutes
    seed = 1_000_000 * options.seed
    while True:
        for name in options.only:
            yield Case(name, seed)
        seed += 1
        if time.monotonic() > end:
            return


def attempt(case: Case, world: Path) -> TriedCase:
    """Try a case.

    Args:
        case: the attack and its seed.
        world: folder with the data and models that are attacked.
    """
    if case.name != CERTIFICATES:
        return try_case(case.name, world, case.seed)
    _, failed_seeds = check_models(MODELS, case.seed, CHECKS)
    description = f"{MODELS} models of seed {case.seed}"
    return TriedCase(description, str(failed_seeds) if failed_seeds else None)


if __name__ == "__main__":
    run_script(main)
