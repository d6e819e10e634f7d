"""Make training pairs from the predictions of several inflection models (knowledge distillation).

    onmt-entmax distill --train run/medium/data/train.src --models A B C \\
        --weights 2 1 2 --out run/medium/data/distilled

Training data shows few forms of each lemma. This command combines the lemmas and tags of the
training data anew, predicts these queries with each model, and averages the predictions
(`onmt-entmax combine`). It keeps as training pairs the predictions that are proven to be the most
probable, and whose probability is between --prob and --at-most: sequence-level distillation (Kim
and Rush 2016) on new queries. Very confident predictions hardly help the student, hence the upper
bound. Mix the pairs, OUT.src and OUT.tgt, into the training data as another corpus.

The models and the student may write in either direction: the files of pairs are in natural order.

The folder OUT.work holds queries and predictions. After an interruption, the same command continues
after the last model whose predictions are complete. With another --prob, --at-most or --draw, it
selects from the same predictions again.
"""

import argparse
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onmt_entmax.checkpoint import find_model, load
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.distill_work import WorkFolder, settings_of
from onmt_entmax.cli.new_queries import new_queries, training_queries
from onmt_entmax.cli.pair_files import pair_paths, pair_texts
from onmt_entmax.cli.pseudo_labels import best_text, certified_records, drawn_text, pseudo_labels
from onmt_entmax.cli.weight_options import add_paths, normalised_weights
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, write_files, write_text
from onmt_entmax.inflector import refuse_models_without_languages
from onmt_entmax.rules import positive, whole
from onmt_entmax.strings.task import INFLECTION


def distill(options: argparse.Namespace) -> None:
    """Make queries, predict them with each model, average the predictions, and write pairs.

    Raises:
        UserError: a folder has no model of inflection, `OUT.work` has predictions of other
            settings, or there are no queries or no pairs.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    pairs = list(pair_paths(options.out))
    work = WorkFolder.of(options.out, len(options.models))
    training = [options.train, options.train.with_suffix(".tgt")]
    refuse_overwriting(training, [*pairs, *work.files()])
    models = list(map(find_model, options.models))
    refuse_models_without_languages(list(map(load, models)))
    settings = settings_of(
        models, options.train, each=options.each, seed=options.seed, beam=options.beam
    )
    if not work.is_begun(settings):
        write_queries(options.train, work.queries, each=options.each, seed=options.seed)
        # Written last: if it is missing, the next run writes the queries again.
        write_text(work.record, json_text(settings))
    for model, report, output in zip(models, work.reports, work.outputs, strict=True):
        if work.is_predicted(report):
            print(f"{report}: {model} is done already")
        else:
            _predict(model, work.queries, report, output, beam=options.beam)
    weights = ["--weights", *options.weights] if options.weights else []
    run_command(
        "combine", "--reports", *work.reports, *weights,
        "--output", work.combined_output, "--report", work.combined_report,
    )  # fmt: skip
    _write_pairs(work.combined_report, options)


def _predict(model: Path, queries: Path, report: Path, output: Path, beam: int) -> None:
    """Predict the queries with one model."""
    run_command(
        "translate", "-model", model, "-src", queries, "-beam_size", beam, "-n_best", beam,
        "-output", output, "-exactness_report", report,
    )  # fmt: skip


def write_queries(train: Path, out: Path, *, each: int, seed: int) -> None:
    """Write new queries, language after language.

    Args:
        train: the training sources, whose lemmas and tags are combined.
        out: file to write.
        each: number of queries for each training source.
        seed: seed of the random combinations.

    Raises:
        UserError: there are no queries, or a file cannot be read or written.
    """
    lines = []
    for language, training in training_queries(train).items():
        # Each language has a generator, so that its queries do not depend on the other languages.
        generator = random.Random(f"{seed}/{language}")
        for query in new_queries(training, each * len(training), generator):
            lines.append(" ".join(INFLECTION.encode_source(query)) + "\n")
    if not lines:
        raise UserError(f"{train}: no lemma can be combined with other tags")
    write_files({out: "".join(lines)})
    print(f"{out}: queries: {len(lines):,}", flush=True)


def _write_pairs(report: Path, options: argparse.Namespace) -> None:
    """Write the training pairs in random order, so that training sees all languages early.

    Args:
        report: exactness report of the averaged predictions.
        options: `out`, `prob`, `at_most`, `draw` and `seed`.

    Raises:
        UserError: there are no pairs, or a file cannot be read or written.
    """
    generator = random.Random(options.seed)
    choose = partial(drawn_text, generator=generator) if options.draw else best_text
    records = certified_records(report, options.prob, options.at_most)
    pairs = list(pseudo_labels(records, choose))
    if not pairs:
        raise UserError(
            f"{report}: no certified prediction has a probability of {options.prob} to "
            f"{options.at_most}"
        )
    generator.shuffle(pairs)
    write_files(pair_texts({options.out: pairs}))
    print(f"{options.out}.{{src,tgt}}: {counted(len(pairs), 'pair')}")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Raises:
        UserError: options exclude each other, or a path names no file.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--train", type=Path, required=True, help="the train.src that `prepare sigmorphon` wrote")
    add_paths(parser, "--models", "run or model folders")
    add("--weights", type=float, nargs="+", help="a weight for each model (default: equal ones)")
    add("--out", type=Path, required=True, help="write the pairs to OUT.src and OUT.tgt")
    count, share = whole(1, 10_000), positive(1)
    add("--each", type=count, default=2, metavar="N", help="queries per training pair (default 2)")
    add("--beam", type=count, default=5, help="beam size, and predictions per model (default 5)")
    add("--prob", type=share, default=0.3, help="least probability of a prediction (default 0.3)")
    add("--at-most", type=share, default=0.95, help="greatest probability (default 0.95)")
    add("--draw", action="store_true", help="sample a prediction instead of taking the best")
    add("--seed", type=int, default=1, help="random seed (default 1)")
    options = parser.parse_args(arguments)
    for name in ("train", "out"):
        if not vars(options)[name].name:  # such as the current folder
            raise UserError(f"--{name} {vars(options)[name]}: names no file")
    if options.weights:
        normalised_weights(options.weights, len(options.models), "model")
    if options.prob > options.at_most:
        raise UserError(f"--prob {options.prob} is above --at-most {options.at_most}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Write the pairs; return the exit status."""
    distill(parse_arguments(arguments))
    return 0
