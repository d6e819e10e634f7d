"""Attack the commands with kills, damage, hostile folders and bad inputs, for as long as you like.

    python -m tools.attack --minutes 30 --seed 1
    python -m tools.attack --replay flips:1000017

Each case is drawn from a seed:

    kills         the process is killed
    signals       SIGINT, SIGTERM or SIGHUP arrives
    disk          the disk is full
    flips         a file of a run is damaged
    folders       a model folder is hostile
    inputs        an option or a file is bad
    certificates  random models are searched, and compared with enumeration

A failure is printed with what replays it. The status is 1 if a case failed. The tests in
`tests/faults` try a few of the same cases.
"""

from __future__ import annotations

import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from tests.commands import offer_server
from tests.faults.attacks import ATTACKS, build, try_case
from tests.faults.certificates import check_models

CERTIFICATES = "certificates"
MEMORY = 8 << 30  # bytes that a process may take


def main(arguments: Sequence[str]) -> int:
    """Attack; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="default 1")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--only", nargs="+", choices=[*ATTACKS, CERTIFICATES], help="default all")
    parser.add_argument("--replay", metavar="CLASS:SEED", help="try one case again")
    options = parser.parse_args(arguments)
    replay = re.fullmatch(rf"({'|'.join((*ATTACKS, CERTIFICATES))}):(\d+)", options.replay or "")
    if options.replay and not replay:
        parser.error(f"--replay: expected CLASS:SEED, not {options.replay!r}")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    offer_server()
    cases, failed = Counter[str](), Counter[str]()
    end = time.monotonic() + 60 * options.minutes
    names = options.only or [*ATTACKS, CERTIFICATES]
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        world = Path(folder).resolve() / "world"
        world.mkdir()
        build(world)
        seed = 1_000_000 * options.seed
        while True:
            if replay:
                names, seed = [replay[1]], int(replay[2])
            for name in names:
                if name == CERTIFICATES:
                    found = check_models(100, seed)[1]
                    case, wrong = f"100 models of seed {seed}", str(found) if found else None
                else:
                    case, wrong = try_case(name, world, seed)
                cases[name] += 1
                if wrong is not None:
                    failed[name] += 1
                    print(f"--replay {name}:{seed}\n    {case}\n    {wrong}", flush=True)
            seed += 1
            if replay or time.monotonic() > end:
                break
    for name in names:
        print(f"{name:14}{cases[name]:8} cases{failed[name]:8} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    run_script(main)
