"""Train this package and its peers on one table for the same time, and compare what they predict.

    python -m tools.bench.peers --train deu.trn --dev deu.dev --peers PEERS --out run/deu
    python -m tools.bench.peers --train *_train.tsv --dev *_dev.tsv --peers PEERS --out run/g2p

PEERS is a folder with a virtual environment for each peer; the commands below make them. If a peer
is not installed or fails, the reason is printed, and the others go on. All systems read the tokens
of `prepare table`, use one core and one thread, and decode the development set with beam 5.

--minutes is processor time of all processes of a training, with start, validations and checkpoints,
so that other load on the machine favours nobody. SIGTERM ends a peer at this time, and its best
checkpoint decodes. Ours ends by its plan; the half minute in which the plan is measured is not
counted. `tools/bench/peer_systems/` has the settings, and where they come from. Other settings may
suit a peer better.

Columns:

    parameters    weights of the network
    updates       of the training; its log may lack the last few
    examples/s    training pairs for each processor second of the whole training
    exact match   percentage of the sources whose prediction is one of the gold strings. A
                  prediction with an unknown symbol is wrong; yoyodyne's own measure counts it as
                  right
    words/s       decoded sources for each processor second, without the start of the program, which
                  is the time for one source
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, write_text
from onmt_entmax.report.tables import aligned_table
from tools.bench.limited_run import run
from tools.bench.peer_measures import Result, measure
from tools.bench.peer_systems import SYSTEMS
from tools.bench.peer_systems.data import Data
from tools.bench.peer_systems.ours import OURS
from tools.bench.peer_systems.system import Command, PeerError, text_of

_INSTALLATION = "To install the peers (with this package's torch==VERSION in each `pip install`):"
_HEAD = ("system", "version", "parameters", "updates", "examples/s", "exact match", "words/s")


def installation() -> str:
    """Return the commands that install the peers, a line for each environment."""
    commands = [kind.install_command() for kind in SYSTEMS if kind.environment]
    return "\n".join(f"    {command}" for command in dict.fromkeys(commands))


def cells(result: Result) -> list[str]:
    """Return a line of the table, below `_HEAD`."""
    return [
        result.system,
        result.version,
        f"{result.parameters:,}",
        f"{result.updates:,}",
        f"{result.examples_per_second:.0f}",
        f"{result.exact_match:.1f}",
        f"{result.words_per_second:.0f}",
    ]


def report(results: Sequence[Result], skipped: Mapping[str, str]) -> str:
    """Return the table, the settings, and why other systems are missing."""
    parts = [aligned_table([_HEAD, *map(cells, results)])] if results else []
    parts += [
        f"{result.system}: {result.settings}; {result.training.processor:.0f} s of processor time, "
        f"{result.training.wall:.0f} s on the clock{', stopped' if result.training.stopped else ''}"
        for result in results
    ]
    parts += [f"{name}: {reason}" for name, reason in skipped.items()]
    return "\n".join(parts)


def prepare_data(options: Namespace) -> Data:
    """Write the tokens of the tables.

    Raises:
        UserError: `prepare table` refuses them.
    """
    tables = ["--train", *map(str, options.train), "--dev", *map(str, options.dev)]
    tables += ["--columns", options.columns] if options.columns else []
    data = Data(options.out / "data", tables)
    log = options.out / "data.log"
    words = [*OURS, "prepare", "table", *tables, "--out", str(data.folder)]
    if run(Command(words), log).status:
        raise UserError(text_of(log).strip().splitlines()[-1])
    data.write_samples()
    return data


class Comparison(NamedTuple):
    """What was measured.

    Attributes:
        results: one for each system that ran.
        skipped: why the other systems have no result, by their names.
    """

    results: list[Result]
    skipped: dict[str, str]


def compare(options: Namespace) -> Comparison:
    """Measure the systems, each in a folder of its own.

    Raises:
        UserError: `prepare table` refuses the tables.
    """
    options.out.mkdir(parents=True)
    data = prepare_data(options)
    comparison = Comparison([], {})
    chosen = [kind for kind in SYSTEMS if kind.name in options.systems]
    for number, kind in enumerate(chosen):
        folder = options.out / f"{number}-{kind.distribution}"
        folder.mkdir()
        system = kind(data, folder, options.peers, options.minutes)
        try:
            comparison.results.append(measure(system, options.minutes))
        except PeerError as error:
            comparison.skipped[kind.name] = str(error)
            print(f"{kind.name}: {error}", file=sys.stderr, flush=True)
    return comparison


@contextmanager
def on_one_core(core: int | None) -> Iterator[None]:
    """Let the commands of the body run on one core of the processor.

    Args:
        core: its number; None: the first that this process may use.

    Raises:
        UserError: this process may not use the core.
    """
    cores = os.sched_getaffinity(0)
    core = min(cores) if core is None else core
    if core not in cores:
        raise UserError(f"--core {core}: not allowed here; there are {sorted(cores)}")
    os.sched_setaffinity(0, {core})  # which new processes inherit
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def parse_arguments(arguments: Sequence[str] | None = None) -> Namespace:
    """Read the command line."""
    names = [system.name for system in SYSTEMS]
    parser: ArgumentParser = argument_parser(f"{__doc__}\n{_INSTALLATION}\n\n{installation()}\n")
    parser.add_argument("--train", nargs="+", type=Path, required=True, help="training tables")
    parser.add_argument("--dev", nargs="+", type=Path, required=True, help="development tables")
    parser.add_argument("--columns", help="as for `prepare table` (default: guessed)")
    parser.add_argument("--minutes", type=float, default=3.0, help="of processor time (default 3)")
    parser.add_argument("--peers", type=Path, help="folder of the virtual environments")
    parser.add_argument("--out", type=Path, required=True, help="new folder for all files")
    parser.add_argument(
        "--systems",
        nargs="+",
        choices=names,
        default=names,
        metavar="SYSTEM",
        help=", ".join(names),
    )
    parser.add_argument("--core", type=int, help="of the processor (default: the first allowed)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    options = parse_arguments(arguments)
    if sys.platform != "linux":
        raise UserError("this benchmark reads processor times from /proc, which only Linux has")
    if options.out.exists():
        raise UserError(f"--out {options.out}: exists; name a new folder")
    options.out = options.out.absolute()
    with on_one_core(options.core):
        results, skipped = compare(options)
    print(f"{options.minutes:g} minutes of processor time, {', '.join(map(str, options.train))}")
    print(report(results, skipped))
    if options.json:
        content = {
            "minutes": options.minutes,
            "train": [str(path) for path in options.train],
            "results": [asdict(result) for result in results],
            "skipped": skipped,
        }
        write_text(options.json, json_text(content))
    return 0


if __name__ == "__main__":
    run_script(main)
