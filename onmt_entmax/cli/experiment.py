"""Run a matrix of trainings, show its progress, and print its table of results.

    onmt-entmax experiment run matrix.yaml --jobs 2 --cores 0,1
    onmt-entmax experiment status matrix.yaml
    onmt-entmax experiment table matrix.yaml --curves curves
    onmt-entmax experiment test matrix.yaml

`run` trains each cell of the matrix with each seed, decodes the development set and evaluates it,
also for the ensemble of the seeds. It skips runs that are done and continues those that stopped, so
after a crash or a signal the same command continues. Several of these commands may work on one
matrix. <run>/<cell>/seed-<number> holds everything about a run: config.yaml, model/ with
metrics.jsonl and checkpoints, log.txt, dev.pred, dev.report.jsonl and its summary, figures.json. A
run that was trained with other options than the matrix now has is refused.

`test` decodes the test set once, when all runs are done: test/test.* or test.* beside the source,
where `prepare` writes it. <run>/test.json records figures, date and checksums. Called again, it
prints them; it refuses other weights, texts or options, unless --again says that the record gets
both.

A matrix file is YAML:

    base: pilot.yaml               # the configuration of all runs, beside this file or in the
                                   # current folder, to which all other paths are relative
    run: run/matrix-pilot          # the folder of the runs
    seeds: [1, 2, 3]
    options: {train_steps: 3000}   # changes to the base, the same for all cells
    cells:                         # or the name of a file of cells
      softmax: {generator_function: softmax}
      smoothed: {label_smoothing: 0.1, translate: {beam_size: 10}}
      longer: {begin_with: smoothed, learning_rate: 0.0005}  # starts from its weights
    translate: {beam_size: 5}      # options of `onmt-entmax translate`
    source: run/pilot/data/dev.src
    reference: run/pilot/data/dev.tgt
    evaluate: sigmorphon           # or bleu
    ensemble: true                 # also decode with all seeds of a cell (default)
    paper: medium                  # compare with a published Table 1; optional: high or medium
                                   # (inflection), de-en, ja-en, ro-en, en-de (Transformers), or
                                   # table2 (pairs)

A table of several pairs of languages has, instead of base, source and reference,

    pairs:                         # each has the cells, and a folder below `run`
      de-en: {base: de-en.yaml, source: iwslt/val.de, reference: iwslt/val.en}
      en-de: {base: en-de.yaml, source: iwslt/val.en, reference: iwslt/val.de}
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.experiment import table as tables
from onmt_entmax.experiment.held_out import measure_once
from onmt_entmax.experiment.matrix import Matrix, Training, read_matrices
from onmt_entmax.experiment.measures import EVALUATIONS
from onmt_entmax.experiment.runner import Runner, check
from onmt_entmax.figures.curves import draw_curves
from onmt_entmax.figures.style import output_stem, prepare, write_figure
from onmt_entmax.rules import whole


def chosen(matrix: Matrix, cells: Sequence[str], seeds: Sequence[int]) -> list[Training]:
    """Return the trainings of some cells and seeds; empty lists mean all.

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


def of_pairs(matrices: Sequence[Matrix], pairs: Sequence[str]) -> list[Matrix]:
    """Return the matrices of some pairs; an empty list means all.

    Raises:
        UserError: there is no such pair.
    """
    known = [matrix.pair for matrix in matrices if matrix.pair]
    for name in pairs:
        if name not in known:
            raise UserError(f"{matrices[0].path}: no pair {name!r}{nearest(name, known)}")
    return [matrix for matrix in matrices if not pairs or matrix.pair in pairs]


def processors(text: str, jobs: int) -> list[int]:
    """Return the processors that `--cores` names, one for each job.

    Raises:
        UserError: they are not numbers, too few, or not available.
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


def run(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Train and measure all unfinished cells, pair by pair."""
    cores = processors(options.cores, options.jobs)
    work = [(matrix, chosen(matrix, options.only, options.seeds)) for matrix in matrices]
    for matrix, trainings in work:  # all, before hours are spent on the first
        check(matrix, trainings)
    status = 0
    for matrix, trainings in work:
        status = max(status, Runner(matrix, trainings, options.jobs, cores).run())
        if status > 1:  # a signal
            break
    return status


def status(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the progress."""
    print(tables.status(matrices))
    return 0


def table(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the results, and draw curves if asked to."""
    if options.curves:
        runs, names = tables.measured_runs(matrices)
        if not runs:
            raise UserError(f"{matrices[0].run}: nothing has been measured yet")
        prepare(names)
        write_figure(draw_curves(runs, names), output_stem(options.curves))
    print(tables.latex(matrices) if options.latex else tables.markdown(matrices))
    return 0


def test(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure the test set, unless that was done, and print all measurements."""
    print(measure_once(matrices, options.again))
    return 0


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, do, purpose in (
        ("run", run, "train and measure all unfinished cells"),
        ("status", status, "print the progress of every run"),
        ("table", table, "print the results beside the paper's"),
        ("test", test, "measure the test set once, and record that"),
    ):
        command = commands.add_parser(name, help=purpose)
        command.set_defaults(do=do)
        command.add_argument("matrix", type=Path, help="matrix file")
        command.add_argument("--pairs", nargs="+", default=[], help="only these pairs of the file")
    add, count = commands.choices["run"].add_argument, following(whole(1, 1000))
    add("--only", nargs="+", default=[], metavar="CELL", help="run only these cells")
    add("--seeds", nargs="+", type=int, default=[], help="run only these seeds")
    add("--jobs", type=count, default=1, metavar="N", help="runs at a time (default 1)")
    add("--cores", default="", help="processors to run on, such as 0,1")
    add = commands.choices["table"].add_argument
    add("--latex", action="store_true", help="print LaTeX, not Markdown")
    add("--curves", type=Path, help="draw the curves of each cell's first run: .pdf and .png")
    add = commands.choices["test"].add_argument
    add("--again", action="store_true", help="measure what has been measured")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run, or print the progress or results; return the exit status."""
    options = parse_arguments(arguments)
    matrices = read_matrices(options.matrix, EVALUATIONS, tables.PAPER, tables.PAPERS_OF_PAIRS)
    done: int = options.do(options, of_pairs(matrices, options.pairs))
    return done
