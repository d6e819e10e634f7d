"""Attack the commands with kills, damage, hostile folders and bad inputs, for as long as you like.

    python -m tools.attack --minutes 30 --seed 1
    python -m tools.attack --replay flips:1000017

Each case is drawn from a seed, and tried in a process with bounded time and memory:

    kills         the process is killed while it writes
    flips         a file of a run is damaged
    folders       a model folder is hostile
    inputs        an option, a file or a key is bad
    signals       SIGINT, SIGTERM or SIGHUP arrives
    disk          the disk is full
    certificates  random models are searched, and compared with enumeration

A failure is printed with what replays it. The end is a table, and FILE.json if --output names it.
The status is 1 if a case failed. The tests in `tests/faults` try a few of the same cases.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.cli.ending import following
from onmt_entmax.rules import positive, whole
from tests.commands import ENVIRONMENT, ROOT, offer_server
from tests.faults.attack import tried
from tests.faults.attacks import ATTACKS
from tests.faults.world import World, build

CERTIFICATES = "certificates"
NAMES = (*ATTACKS, CERTIFICATES)
MODELS = 100  # random models of one case of the certificates


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    several = following(whole(1, 10**9))
    parser.add_argument("--minutes", type=following(positive(10**6)), default=1.0, help="default 1")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--only", default=",".join(NAMES), metavar="CLASSES", help="default all")
    parser.add_argument("--cases", type=several, help="end after so many cases of each class")
    parser.add_argument("--workers", type=several, default=1, help="cases at a time (default 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write them here as JSON too")
    parser.add_argument("--replay", metavar="CLASS:SEED", help="try one case again")
    options = parser.parse_args(arguments)
    options.only = [options.replay.split(":")[0]] if options.replay else options.only.split(",")
    if options.replay and not options.replay.partition(":")[2].isdecimal():
        parser.error(f"--replay {options.replay}: write CLASS:SEED")
    if unknown := set(options.only) - set(NAMES):
        parser.error(f"no class {', '.join(unknown)} among {', '.join(NAMES)}")
    return options


def attempt_case(world: World, name: str, seed: int) -> tuple[str, str | None]:
    """Try a case of a class; return the case and what went wrong."""
    if name != CERTIFICATES:
        case, wrong = tried(ATTACKS[name], world, seed)
        return str(case), wrong
    command = [sys.executable, "-m", "tests.faults.certificates"]
    command += ["--models", str(MODELS), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    wrong = (done.stdout + done.stderr).strip()[-2000:] if done.returncode else None
    return f"{MODELS} models of seed {seed}", wrong


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Yield classes and seeds, in rounds over the classes, until the time is over."""
    if options.replay:
        yield options.only[0], int(options.replay.split(":")[1])
        return
    end = time.monotonic() + 60 * options.minutes
    rounds = count() if options.cases is None else range(options.cases)
    for number in rounds:
        for name in options.only:
            if time.monotonic() > end:
                return
            yield name, 1_000_000 * options.seed + number


def attack(options: argparse.Namespace, world: World) -> tuple[Counter[str], list[dict]]:
    """Try cases; return how many were tried by class, and the failures."""
    counts: Counter[str] = Counter()
    failures: list[dict] = []
    running: dict[Future, tuple[str, int]] = {}
    todo = cases(options)
    with ThreadPoolExecutor(options.workers) as pool, tqdm(unit="case", disable=None) as bar:
        while True:
            while len(running) < options.workers and (drawn := next(todo, None)) is not None:
                running[pool.submit(attempt_case, world, *drawn)] = drawn
            if not running:
                return counts, failures
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name, seed = running.pop(future)
                case, wrong = future.result()
                counts[name] += 1
                if wrong is not None:
                    wrong = wrong.replace(str(world.folder.parent), "")
                    failures.append({"replay": f"{name}:{seed}", "case": case, "wrong": wrong})
                    tqdm.write(f"--replay {name}:{seed}\n    {case}\n    {wrong}")
                bar.update()
                bar.set_postfix(failed=len(failures))


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack; return the exit status."""
    options = parse_arguments(arguments)
    offer_server()
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name).resolve() / "world"
        folder.mkdir()
        counts, failures = attack(options, build(folder))
    failed = Counter(failure["replay"].split(":")[0] for failure in failures)
    print(f"\n{'class':14}{'cases':>8}{'failed':>8}")
    for name in options.only:
        print(f"{name:14}{counts[name]:8}{failed[name]:8}")
    print(f"{'together':14}{sum(counts.values()):8}{len(failures):8}")
    if options.output:
        content = {"seed": options.seed, "cases": counts, "failed": failed, "failures": failures}
        options.output.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
