"""Run a matrix of trainings, see how far it is, and print its table.

    python tools/experiment.py run config/morphology/matrix-pilot.yaml --jobs 2 --cores 0,1
    python tools/experiment.py status config/morphology/matrix-pilot.yaml
    python tools/experiment.py table config/morphology/matrix-pilot.yaml --curves curves.png

`run` trains every cell with every seed, decodes the development set, measures it, and does the
same for the ensemble of the seeds. It skips what is done and continues what stopped, so the
command after a crash, a signal or a change of mind is the same command. Everything about a run is
in <run>/<cell>/seed-<number>: config.yaml, model/ with metrics.jsonl and checkpoints, log.txt,
dev.pred, dev.report.jsonl and its summary, figures.json. A folder that was trained with other
options than the matrix says is refused. Several of these commands may work on one matrix.

tools/experiments/matrix.py says what a matrix file holds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.experiment import table as tables
from onmt_entmax.experiment.matrix import Matrix, Training, read_matrix
from onmt_entmax.experiment.measures import EVALUATIONS
from onmt_entmax.experiment.runner import Runner
from onmt_entmax.figures.curves import plot


def chosen(matrix: Matrix, cells: Sequence[str], seeds: Sequence[int]) -> list[Training]:
    """The trainings of some cells and seeds; empty lists mean all.

    Raises:
        UserError: the matrix has no such cell or seed.
    """
    known = [cell.name for cell in matrix.cells]
    for name in cells:
        if name not in known:
            raise UserError(f"{matrix.path}: no cell {name!r}{nearest(name, known)}")
    for seed in seeds:
        if seed not in matrix.seeds:
            raise UserError(f"{matrix.path}: seed {seed} is not among {list(matrix.seeds)}")
    return [
        training
        for training in matrix.trainings()
        if training.cell.name in (cells or known) and training.seed in (seeds or matrix.seeds)
    ]


def processors(text: str, jobs: int) -> list[int]:
    """The processors named in `--cores`, one for each job.

    Raises:
        UserError: not numbers, too few, or not available here.
    """
    if not text:
        return []
    try:
        cores = [int(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"--cores: expected numbers such as 0,1 not {text!r}") from None
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("--cores: this system cannot keep a process on a processor")
    available = sorted(os.sched_getaffinity(0))
    if len(cores) < jobs or not set(cores) <= set(available):
        raise UserError(
            f"--cores: {text} must name {jobs} of the processors {available}, as many as --jobs"
        )
    return cores


def run(options: argparse.Namespace, matrix: Matrix) -> int:
    """The command `run`."""
    if options.jobs < 1:
        raise UserError(f"--jobs: must be above 0, not {options.jobs}")
    trainings = chosen(matrix, options.only, options.seeds)
    return Runner(matrix, trainings, options.jobs, processors(options.cores, options.jobs)).run()


def status(options: argparse.Namespace, matrix: Matrix) -> int:
    """The command `status`."""
    print(tables.status(matrix))
    return 0


def table(options: argparse.Namespace, matrix: Matrix) -> int:
    """The command `table`."""
    if options.curves:
        runs, names = tables.measured_runs(matrix)
        if not runs:
            raise UserError(f"{matrix.run}: nothing has been measured yet")
        plot(runs, names, options.curves)
    print(tables.latex(matrix) if options.latex else tables.markdown(matrix))
    return 0


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run", help="do what is left to do")
    command.set_defaults(do=run)
    command.add_argument("matrix", type=Path, help="matrix file")
    command.add_argument(
        "--only", nargs="+", default=[], metavar="CELL", help="run only these cells"
    )
    command.add_argument("--seeds", nargs="+", type=int, default=[], help="run only these seeds")
    command.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    command.add_argument("--cores", default="", help="processors for them, such as 0,1")
    command = commands.add_parser("status", help="how far every run is")
    command.set_defaults(do=status)
    command.add_argument("matrix", type=Path, help="matrix file")
    command = commands.add_parser("table", help="the results, beside the paper's")
    command.set_defaults(do=table)
    command.add_argument("--latex", action="store_true", help="LaTeX, not Markdown")
    command.add_argument("--curves", type=Path, help="draw the first run of each cell here")
    command.add_argument("matrix", type=Path, help="matrix file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Runs a command; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    matrix = read_matrix(options.matrix, EVALUATIONS, tables.PAPER)
    done: int = options.do(options, matrix)
    return done
