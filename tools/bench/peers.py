"""Train this package and its peers on one table for the same time, and compare what they predict.

    python -m tools.bench.peers --train deu.trn --dev deu.dev --peers PEERS --out run/deu
    python -m tools.bench.peers --train *_train.tsv --dev *_dev.tsv --peers PEERS --out run/g2p

PEERS is a folder with a virtual environment for each peer, made by

    python3 -m venv PEERS/yoyodyne && PEERS/yoyodyne/bin/pip install yoyodyne==0.5.27
    PEERS/yoyodyne/bin/pip uninstall torchvision torchaudio    # do not fit a PyTorch for the CPU
    python3 -m venv PEERS/joeynmt && PEERS/joeynmt/bin/pip install joeynmt==2.3.0 importlib_metadata
    python3 -m venv PEERS/eole && PEERS/eole/bin/pip install eole==0.6.4 aiohttp

(append torch==VERSION for this package's PyTorch). A peer that is not there, or fails, is named
with the reason, and the others go on. All systems read the tokens of `prepare table`, use one core
and one thread, and decode the development set with beam 5.

--minutes is processor time: of all processes of a training, with start, validations and
checkpoints. So other load on the machine favours nobody. A peer is ended by SIGTERM, and its best
checkpoint is taken; ours ends by its plan, whose half minute of measurements is not counted.
`tools/bench/peer_systems/` has the settings, and where they come from: others can be better.

Columns:

    parameters    weights of the network
    updates       that the training made, at least (the last that its log tells)
    examples/s    training pairs by processor seconds of the whole training
    exact match   sources in percent whose prediction is one of the gold strings; an unknown symbol
                  is wrong. The peers' own measures differ: that of yoyodyne counts an unknown
                  symbol as right
    words/s       decoded sources by processor seconds, without the start (the time for one source)
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, write_text
from onmt_entmax.report.measures import correct_forms, is_right
from onmt_entmax.report.tables import aligned_table
from tools.bench.limited_run import TICKS, Used, run
from tools.bench.peer_systems import SYSTEMS
from tools.bench.peer_systems.ours import OURS
from tools.bench.peer_systems.system import LOG, Command, Data, PeerError, System

_HEAD = ("system", "version", "parameters", "updates", "examples/s", "exact match", "words/s")


@dataclass(frozen=True)
class Result:
    """A system's line of the table.

    Attributes:
        system: its name.
        version: that is installed.
        parameters: weights of the network.
        updates: that the training made, at least.
        examples_per_second: training pairs by processor seconds.
        exact_match: percent of the sources.
        words_per_second: decoded sources by processor seconds.
        settings: for people.
        training: what it used.
    """

    system: str
    version: str
    parameters: int
    updates: int
    examples_per_second: float
    exact_match: float
    words_per_second: float
    settings: str
    training: Used

    def cells(self) -> list[str]:
        """Return the line as texts."""
        return [
            self.system,
            self.version,
            f"{self.parameters:,}",
            f"{self.updates:,}",
            f"{self.examples_per_second:.0f}",
            f"{self.exact_match:.1f}",
            f"{self.words_per_second:.0f}",
        ]


def checked_run(command: Command, log: Path, seconds: float | None = None) -> Used:
    """Run a command that must end well, or be stopped.

    Raises:
        PeerError: it failed; names the last line of its log.
    """
    used = run(command, log, seconds)
    if used.status and not used.stopped:
        lines = [line for line in text_of(log).splitlines() if line.strip()]
        last = lines[-1].strip() if lines else f"exit status {used.status}"
        raise PeerError(f"failed: {last} ({log})")
    return used


def text_of(log: Path) -> str:
    """Return a log."""
    return log.read_text(encoding="utf-8", errors="replace")


def exact_match(
    sources: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> float:
    """Return the percentage of different sources whose prediction is one of their references.

    All are tokens between spaces, of which a string has only one division, so equal tokens are
    equal strings. An unknown symbol is none of a reference's, thus wrong.

    Raises:
        PeerError: there is another number of predictions.
    """
    if len(predictions) != len(sources):
        raise PeerError(f"{len(predictions):,} predictions for {len(sources):,} sources")
    forms = correct_forms(sources, references)
    right = {
        source: any(is_right(form, predicted) for form in some)
        for source, some, predicted in zip(sources, forms, predictions, strict=True)
    }
    return 100 * sum(right.values()) / len(right)


def version_of(system: System) -> str:
    """Return the version that is installed.

    Raises:
        PeerError: none is.
    """
    code = f"import importlib.metadata as m; print(m.version({system.distribution!r}))"
    found = subprocess.run([system.python, "-c", code], capture_output=True, text=True, check=False)
    if found.returncode:
        raise PeerError(f"not installed: {system.how}")
    return found.stdout.strip()


def measure(system: System, minutes: float) -> Result:
    """Train a system, decode the development set, and score it.

    Raises:
        PeerError: it is not installed, or fails.
    """
    version = version_of(system)
    folder = system.folder
    data = system.data
    for number, command in enumerate(system.prepare()):
        checked_run(command, folder / f"prepare{number}.log")
    training = checked_run(system.train(), folder / LOG, 60 * minutes)
    updates = system.updates()
    start = decode(system, "one")  # nearly all of it is the start
    decoding = decode(system, "dev") - start
    sources = data.lines("dev", "src")
    predictions = system.predictions(folder / "dev.predicted")
    score = exact_match(sources, data.lines("dev", "tgt"), predictions)
    return Result(
        system=system.name,
        version=version,
        parameters=system.parameters(),
        updates=updates,
        examples_per_second=updates * system.batch / training.processor,
        exact_match=score,
        words_per_second=(len(sources) - 1) / max(decoding, 1 / TICKS),
        settings=system.settings,
        training=training,
    )


def decode(system: System, split: str) -> float:
    """Decode a file, SPLIT.src to SPLIT.predicted; return the seconds of processor time.

    Raises:
        PeerError: it fails.
    """
    output = system.folder / f"{split}.predicted"
    command = system.decode(system.data.path(split, "src"), output)
    return checked_run(command, system.folder / f"{split}.log").processor


def report(results: Sequence[Result], skipped: Mapping[str, str]) -> str:
    """Return the table, the settings, and why other systems are missing."""
    parts = [aligned_table([_HEAD, *(result.cells() for result in results)])] if results else []
    parts += [
        f"{each.system}: {each.settings}; {each.training.processor:.0f} s of processor time, "
        f"{each.training.wall:.0f} s on the clock" + (", stopped" if each.training.stopped else "")
        for each in results
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


def compare(options: Namespace) -> tuple[list[Result], dict[str, str]]:
    """Measure the systems; return their results, and why others have none."""
    options.out.mkdir(parents=True)
    data = prepare_data(options)
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for number, kind in enumerate(each for each in SYSTEMS if each.name in options.systems):
        folder = options.out / f"{number}-{kind.distribution}"
        folder.mkdir()
        system = kind(data, folder, options.peers, options.minutes)
        try:
            results.append(measure(system, options.minutes))
        except PeerError as error:
            skipped[kind.name] = str(error)
            print(f"{kind.name}: {error}", file=sys.stderr, flush=True)
    return results, skipped


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
    names = [each.name for each in SYSTEMS]
    parser: ArgumentParser = argument_parser(__doc__)
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
            "results": [asdict(each) for each in results],
            "skipped": skipped,
        }
        write_text(options.json, json_text(content))
    return 0


if __name__ == "__main__":
    run_script(main)
