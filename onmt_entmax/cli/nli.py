"""Train attention classifiers of sentence pairs (Martins and Astudillo 2016, section 4.3).

    onmt-entmax nli train --config config/nli/sick.yaml --out run/nli/sparsemax-1
    onmt-entmax nli evaluate run/nli/* --data sick/dev.tsv
    onmt-entmax nli figures run/nli/softmax-1 run/nli/sparsemax-1 --data sick/dev.tsv \\
        --lines 12 40 --out run/pictures

train       train on a CPU; RUN gets the best epoch so far whenever there is a better one, so it can
            be stopped at any time, but not resumed
evaluate    accuracy, and the words of a premise with a weight above zero; of several runs, also
            their means and standard deviations by kind of attention
figures     attention of several runs to the premises of some lines, as PDF and PNG (needs
            matplotlib)

A file of pairs is SNLI's if its name ends in .jsonl (`onmt-entmax prepare fetch-snli`), else a
table with the columns sentence_A, sentence_B and entailment_judgment, separated by tabs, as SICK's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.classify.nli import (
    LOG,
    NONE,
    RULES,
    Measures,
    NLIError,
    Prediction,
    Settings,
    load,
    measure,
    predict,
    train,
)
from onmt_entmax.classify.nli_data import LABELS, Pair, encode, read_pairs
from onmt_entmax.classify.settings import read_settings
from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.errors import counted
from onmt_entmax.experiment.table import spread
from onmt_entmax.figures.premise import Attended, draw_premise
from onmt_entmax.figures.style import check_folder, model_names, prepare, write_figure
from onmt_entmax.files import refuse_overwriting, write_text
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole


def of_training(options: argparse.Namespace) -> None:
    """Run `train`."""
    settings = read_settings(options.config, Settings, RULES)
    if options.seed is not None:
        settings = replace(settings, seed=options.seed)
    if options.attention is not None:
        settings = replace(settings, attention=options.attention)
    best = train(settings, options.out, lambda line: print(line, file=sys.stderr, flush=True))
    print(f"{options.out}: best epoch: {best} on the pairs that chose it; {LOG} has all epochs")


class Judged(NamedTuple):
    """What a run says about the pairs of a file."""

    settings: Settings
    pairs: list[Pair]
    predictions: list[Prediction]
    measures: Measures


def judge(run: Path, data: Path) -> Judged:
    """Return the predictions of a run for a file of pairs."""
    settings, vocabulary, model = load(run)
    pairs = read_pairs(data, settings.lowercase).pairs
    encoded = encode(pairs, vocabulary)
    predictions = predict(model, settings, encoded)
    return Judged(settings, pairs, predictions, measure(settings, encoded, predictions))


def of_evaluation(options: argparse.Namespace) -> None:
    """Run `evaluate`."""
    if options.output and len(options.runs) > 1:
        raise NLIError("--output takes the predictions of one run; name one")
    refuse_overwriting([options.data], [options.output])
    rows: list[tuple[str, ...]] = []
    kinds: dict[str, list[Measures]] = {}
    for run in options.runs:
        judged = judge(run, options.data)
        kind, seed = str(judged.settings.attention), str(judged.settings.seed)
        rows.append((str(run), kind, seed, *cells([judged.measures])))
        kinds.setdefault(kind, []).append(judged.measures)
        if options.output:
            write_text(options.output, json_lines(judged))
    counts = Counter(pair.label for pair in judged.pairs)
    label, count = counts.most_common(1)[0]
    share, words = 100 * count / len(judged.pairs), judged.measures.words
    print(
        f"{counted(len(judged.pairs), 'pair')}, {words:.2f} words a premise, "
        f"{share:.2f} % {LABELS[label]}"
    )
    print(aligned_table([("run", "attention", "seed", "accuracy", "attended"), *rows]))
    if len(rows) > 1:
        means = [(kind, str(len(found)), *cells(found)) for kind, found in kinds.items()]
        print("\n" + aligned_table([("attention", "runs", "accuracy", "attended"), *means]))


def cells(measures: Sequence[Measures]) -> tuple[str, str]:
    """Return accuracy and attended words; of several runs, means and standard deviations."""
    attended = [m.attended for m in measures if m.attended is not None]
    return spread([m.accuracy for m in measures]), spread(attended)


def json_lines(judged: Judged) -> str:
    """Return the predictions, one JSON object a line."""
    lines = []
    for pair, prediction in zip(judged.pairs, judged.predictions, strict=True):
        content = {
            "line": pair.line,
            "premise": pair.premise,
            "hypothesis": pair.hypothesis,
            "label": LABELS[pair.label],
            "predicted": LABELS[prediction.label],
            "probabilities": dict(zip(LABELS, prediction.probabilities, strict=True)),
            "attention": prediction.attention,
        }
        lines.append(json.dumps(content, ensure_ascii=False) + "\n")
    return "".join(lines)


def of_figures(options: argparse.Namespace) -> None:
    """Run `figures`."""
    check_folder(options.out)
    names = model_names(options.runs, options.names)
    prepare()  # fail before the work if matplotlib is missing
    judged = [judge(run, options.data) for run in options.runs]
    for run, each in zip(options.runs, judged, strict=True):
        if each.settings.attention == NONE:
            raise NLIError(f"{run}: has no attention to draw")
    places = {pair.line: place for place, pair in enumerate(judged[0].pairs)}
    for line in options.lines:
        if line not in places:
            raise NLIError(f"{options.data}: line {line} has no pair with a label")
    for line in options.lines:
        place = places[line]
        pair = judged[0].pairs[place]
        models = []
        for name, each in zip(names, judged, strict=True):
            prediction = each.predictions[place]
            models.append(Attended(name, LABELS[prediction.label], prediction.attention or []))
        prepare([*pair.premise, *pair.hypothesis, *names])
        figure = draw_premise(pair.premise, pair.hypothesis, LABELS[pair.label], models)
        print(write_figure(figure, options.out / f"line-{line}"))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    add = commands.add_parser("train").add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="such as config/nli/sick.yaml")
    add("--out", type=Path, required=True, metavar="RUN", help="new folder of the run")
    add("--seed", type=following(RULES["seed"]), help="in place of the configuration's")
    add("--attention", type=following(RULES["attention"]), help="in place of the configuration's")
    add = commands.add_parser("evaluate").add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    add("--data", type=Path, required=True, metavar="FILE", help="pairs")
    add("--output", type=Path, metavar="FILE", help="predictions as JSON lines")
    add = commands.add_parser("figures").add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    add("--data", type=Path, required=True, metavar="FILE", help="pairs")
    line = following(whole(1, 10**9))
    add("--lines", nargs="+", type=line, required=True, metavar="N", help="lines of that file")
    add("--names", nargs="+", metavar="NAME", help="names of the runs (default: folder names)")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for line-N.pdf and line-N.png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    options = parse_arguments(arguments)
    run = {"train": of_training, "evaluate": of_evaluation, "figures": of_figures}
    run[options.command](options)
    return 0
