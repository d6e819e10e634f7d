"""Run a matrix of trainings, show its progress, and print its table beside the paper's.

    python -m tools.papers.tables run matrix.yaml --jobs 2 --cores 0,1
    python -m tools.papers.tables status matrix.yaml
    python -m tools.papers.tables table matrix.yaml --curves curves
    python -m tools.papers.tables test matrix.yaml

`run` trains each cell of the matrix with each seed, decodes the development set and evaluates it,
also for the ensemble of the seeds. It skips runs that are done and continues those that stopped, so
after a crash or a signal the same command continues. <run>/<cell>/seed-<number> holds everything
about a run: config.yaml, model/ with metrics.jsonl and checkpoints, log.txt, dev.pred,
dev.report.jsonl and its summary, figures.json. A run that was trained with other options than the
matrix now has is refused.

`test` decodes the test set once, when all runs are done: test/test.* or test.* beside the source,
where `prepare` writes it. <run>/test.json records figures, date and checksums. Called again, it
prints them. It refuses other weights, texts or options; with --again it measures anew, continues
after a stop, and keeps all records.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.checkpoint import read_best
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole
from tools.papers import matrix_file
from tools.papers.evaluation import EVALUATE
from tools.papers.figure_curves import draw_curves
from tools.papers.held_out import measure_test_sets
from tools.papers.job_figures import figures_of, measurements
from tools.papers.latex import latex_table
from tools.papers.markdown import markdown_table
from tools.papers.matrix import Job, Matrix, Training
from tools.papers.matrix_file import read_matrices
from tools.papers.pair_results import several_pairs
from tools.papers.pictures import set_style, write
from tools.papers.result_notes import notes
from tools.papers.results import one_matrix
from tools.papers.run_matrices import run


def table(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the results, and draw the curves of each cell's first run if asked to.

    Raises:
        UserError: there is nothing to draw.
    """
    if options.curves:
        draw_first_runs(matrices, options.curves)
    tables = several_pairs(matrices) if matrices[0].pair else one_matrix(matrices[0])
    form = latex_table if options.latex else markdown_table
    texts = list(map(form, tables))
    if not options.latex:
        texts.append(notes(matrices[0]))
    print("\n\n".join(texts))
    return 0


def draw_first_runs(matrices: Sequence[Matrix], path: Path) -> None:
    """Draw the curves of each cell's first run.

    Raises:
        UserError: there is nothing to draw.
    """
    runs: dict[str, Path] = {}
    for matrix in matrices:
        for training in matrix.trainings():
            if measurements(training.run_folder):
                runs.setdefault(f"{matrix.pair} {training.cell.name}".lstrip(), training.run_folder)
    if not runs:
        raise UserError(f"{matrices[0].folder}: nothing has been measured yet")
    set_style(runs)
    write(draw_curves(list(runs.values()), list(runs)), path)


def status(_: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the progress of every run and ensemble."""
    lines = [["run", "state", "step", "best", "at", "result"]]
    for matrix in matrices:
        lines += [_state_of(job) for job in matrix.jobs()]
    print(aligned_table(lines, left=2))
    return 0


def _state_of(job: Job) -> list[str]:
    """Return the line of a job in `status`; values that are not known yet are empty."""
    figures = figures_of(job)
    best = read_best(job.run_folder) if isinstance(job, Training) else None
    rows = measurements(job.run_folder) if isinstance(job, Training) else []
    state = "begun" if rows else "waiting"
    step = str(rows[-1]["step"]) if rows else ""
    best_value = f"{best.metric} {best.value:.4g}" if best else ""
    best_step = str(best.step) if best else ""
    result = ""
    if figures:
        state = "done"
        result = f"{figures[EVALUATE[job.matrix.evaluate].main]:.2f}"
    return [job.name, state, step, best_value, best_step, result]


class Command(NamedTuple):
    """A subcommand.

    Attributes:
        run: does it, with the options and matrices of the command line; returns the exit status.
        purpose: purpose in the help.
    """

    run: Callable[[argparse.Namespace, Sequence[Matrix]], int]
    purpose: str


COMMANDS = {
    "run": Command(run, "train and measure all unfinished cells"),
    "status": Command(status, "print the progress of every run"),
    "table": Command(table, "print the results beside the paper's"),
    "test": Command(measure_test_sets, "measure the test set once, and record that"),
}


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(f"{__doc__}\n{matrix_file.__doc__}")
    commands = parser.add_subparsers(required=True, dest="command")
    for name, command in COMMANDS.items():
        add = commands.add_parser(name, help=command.purpose).add_argument
        add("matrix", type=Path, help="matrix file")
        add("--pairs", nargs="+", default=[], help="only these pairs of the file")
    add_to_run = commands.choices["run"].add_argument
    add_to_run("--only", nargs="+", default=[], metavar="CELL", help="run only these cells")
    add_to_run("--seeds", nargs="+", type=int, default=[], help="run only these seeds")
    jobs = whole(1, 1000)
    add_to_run("--jobs", type=jobs, default=1, metavar="N", help="runs at a time (default 1)")
    add_to_run("--cores", help="processors to run on, such as 0,1")
    add_to_table = commands.choices["table"].add_argument
    add_to_table("--latex", action="store_true", help="print LaTeX, not Markdown")
    add_to_table("--curves", type=Path, help="draw curves: .pdf and .png")
    add_to_test = commands.choices["test"].add_argument
    add_to_test("--again", action="store_true", help="measure what has been measured")
    return parser.parse_args(arguments)


def chosen_matrices(options: argparse.Namespace) -> list[Matrix]:
    """Return the matrices of the file, or those of the pairs that `--pairs` names.

    Raises:
        UserError: the file is wrong, or has no such pair.
    """
    matrices = read_matrices(options.matrix)
    pairs = [matrix.pair for matrix in matrices]
    for name in options.pairs:
        if name not in pairs:
            raise UserError(f"{options.matrix}: no pair {name!r}{nearest(name, pairs)}")
    return [matrix for matrix in matrices if not options.pairs or matrix.pair in options.pairs]


def main(arguments: Sequence[str]) -> int:
    """Run, or print the progress or results; return the exit status."""
    options = parse_arguments(arguments)
    return COMMANDS[options.command].run(options, chosen_matrices(options))


if __name__ == "__main__":
    run_script(main)
