"""Repeat the experiments of Martins and Astudillo (2016): multi-label, and attention over pairs.

    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml
    python -m tools.papers.sparsemax multilabel config/multilabel/scene.yaml \\
        --test run/multilabel/data/scene-test.arff
    python -m tools.papers.sparsemax nli train config/nli/sick.yaml --out run/nli/sparsemax-1
    python -m tools.papers.sparsemax nli evaluate run/nli/* --data sick/dev.tsv
    python -m tools.papers.sparsemax nli figures run/nli/softmax-1 run/nli/sparsemax-1 \\
        --data sick/dev.tsv --lines 12 40 --out run/pictures

multilabel (section 4.2) cross-validates linear classifiers with several losses, or evaluates a test
file. Each row of the training file is predicted by a model that was chosen and fitted without it:
outer folds measure F1, inner folds choose L2 and threshold (or scale of the scores). With --test,
all training rows choose and fit. Rows without labels are not trained on and do not count in F1.
Micro and macro F1 each have their own choices. Macro F1 is 2PR / (P + R) of the mean precision P
and the mean recall R of the labels, as in the authors' code; the mean of the labels' F1, which
scikit-learn calls macro, is of the same predictions. The folder `out` receives, for each loss,
LOSS.json (F1, choices), LOSS.predictions.jsonl and table.md, which is also printed; with --test,
these names have `.test` in them. A loss whose files are there is not fitted again.

Keys of its configuration: name (scene, emotions, birds, cal500 and reuters have the paper's figures
beside ours), train (ARFF, if it ends so, or SVMlight), labels (Mulan's list in XML), out, seeds (of
the folds: 5), losses (names or alphas: logistic, softmax, sparsemax, entmax15), and the grid: folds
(5), l2, logistic_thresholds, softmax_thresholds (in multiples of 1 / number of labels), scales (of
the scores, for sparse losses), standardise (true; false keeps features as they are).

nli (section 4.3) trains, evaluates and shows attention classifiers of pairs. `train` writes the
best epoch so far to --out whenever there is a better one. `evaluate` prints accuracy and the
words of a premise with a weight above zero; of several runs, also their means and standard
deviations by kind of attention. `figures` draws the attention of several runs to the premises of
some lines. A file of pairs is SNLI's if its name ends in .jsonl, else a table with the columns
sentence_A, sentence_B and entailment_judgment, as SICK's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.config import ConfigError
from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import refuse_overwriting, write_files
from onmt_entmax.options.reader import read_yaml
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole
from tools.papers import multilabel_table, nli
from tools.papers.arguments import Add, names_of
from tools.papers.nli_data import LABELS, Pair, encode, read_pairs
from tools.papers.nli_model import ATTENTION, Settings
from tools.papers.nli_picture import draw_premise
from tools.papers.pictures import prepare, write
from tools.papers.published import spread

T = TypeVar("T")


def read_settings(path: Path, kind: type[T], **changes: object) -> T:
    """Return the settings of a YAML file, with changes.

    Raises:
        UserError: it cannot be read, a key is unknown or missing, or a value is wrong.
    """
    content = {**read_yaml(str(path)), **changes}
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    for name in content:
        if name not in defaults:
            raise UserError(f"{path}: {name}: no such key{nearest(str(name), list(defaults))}")
    for name, default in defaults.items():
        if default is MISSING and name not in content:
            raise UserError(f"{path}: {name}: is missing")
    try:
        return kind(**content)
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None


def evaluate_labels(options: argparse.Namespace) -> None:
    """Run `multilabel`."""
    if options.test and len(options.config) > 1:
        raise UserError("--test: takes one configuration")
    for path in options.config:
        print(
            multilabel_table.evaluate(read_settings(path, multilabel_table.Settings), options.test),
            flush=True,
        )


def train(options: argparse.Namespace) -> None:
    """Run `nli train`."""
    chosen = {"attention": options.attention, "seed": options.seed}
    changes = {name: value for name, value in chosen.items() if value is not None}
    settings = read_settings(options.config, Settings, **changes)
    best = nli.train(settings, options.out, lambda line: print(line, file=sys.stderr, flush=True))
    print(f"{options.out}: best epoch: {best}, on the pairs that chose it")


def judge(run: Path, data: Path) -> tuple[Settings, list[Pair], list[nli.Prediction]]:
    """Return the settings of a run, the pairs of a file, and the run's predictions."""
    settings, words, model = nli.load(run)
    pairs = read_pairs(data, settings.lowercase)
    return settings, pairs, nli.predict(model, settings, encode(pairs, words))


def evaluate(options: argparse.Namespace) -> None:
    """Run `nli evaluate`."""
    refuse_overwriting([options.data], [options.output])
    rows = [["run", "attention", "seed", "accuracy", "attended"]]
    by_attention: dict[str, list[nli.Measures]] = {}
    for run in options.models:
        settings, pairs, predictions = judge(run, options.data)
        measures = nli.measure(settings, pairs, predictions)
        attention = str(settings.attention)
        by_attention.setdefault(attention, []).append(measures)
        rows.append([str(run), attention, str(settings.seed), *_cells([measures])])
        if options.output:
            write_files({options.output: _lines(pairs, predictions)})
    label, count = Counter(pair.label for pair in pairs).most_common(1)[0]
    print(
        f"{counted(len(pairs), 'pair')}, {measures.words:.2f} words a premise, "
        f"{100 * count / len(pairs):.2f} % {LABELS[label]}"
    )
    print(aligned_table(rows))
    if len(options.models) > 1:
        means = [["attention", "runs", "accuracy", "attended"]]
        means += [[kind, str(len(runs)), *_cells(runs)] for kind, runs in by_attention.items()]
        print("\n" + aligned_table(means))


def _lines(pairs: Sequence[Pair], predictions: Sequence[nli.Prediction]) -> str:
    """Return a JSON line for each pair, with its prediction."""
    records = [
        {**pair._asdict(), **prediction._asdict()}
        for pair, prediction in zip(pairs, predictions, strict=True)
    ]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _cells(measures: Sequence[nli.Measures]) -> list[str]:
    """Return accuracy and attended words of runs, for a table."""
    attended = [each.attended for each in measures if each.attended is not None]
    return [spread([each.accuracy for each in measures]), spread(attended)]


def figures(options: argparse.Namespace) -> None:
    """Run `nli figures`."""
    runs = zip(names_of(options), options.models, strict=True)
    judged = {name: judge(run, options.data) for name, run in runs}
    pairs = next(iter(judged.values()))[1]
    index_of = {pair.line: index for index, pair in enumerate(pairs)}
    for line in options.lines:
        if line not in index_of:
            raise UserError(f"{options.data}: line {line} has no pair with a label")
        index = index_of[line]
        pair = pairs[index]
        models = {name: predictions[index] for name, (_, _, predictions) in judged.items()}
        for name, prediction in models.items():
            if prediction.attention is None:
                raise UserError(f"{name}: has no attention to draw")
        prepare([*pair.premise, *pair.hypothesis, *models])
        print(write(draw_premise(pair, models), options.out / f"line-{line}"))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `do` is the function of the command."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("multilabel")
    command.set_defaults(do=evaluate_labels)
    add: Any = command.add_argument
    add("config", nargs="+", type=Path, help="configurations; each has its own table")
    add("--test", type=Path, help="file to evaluate instead of cross-validation")
    actions = commands.add_parser("nli").add_subparsers(required=True)
    command = actions.add_parser("train")
    command.set_defaults(do=train)
    add = command.add_argument
    add("config", type=Path, metavar="FILE", help="such as config/nli/sick.yaml")
    add("--out", type=Path, required=True, metavar="RUN", help="new folder of the run")
    add("--seed", type=whole(0, 2**63 - 1), help="in place of the configuration's")
    add("--attention", type=ATTENTION, help="likewise; a name or alpha")
    command = actions.add_parser("evaluate")
    command.set_defaults(do=evaluate)
    add = command.add_argument
    _add_runs(add)
    add("--output", type=Path, metavar="FILE", help="predictions (of the last run)")
    command = actions.add_parser("figures")
    command.set_defaults(do=figures)
    add = command.add_argument
    _add_runs(add)
    add("--lines", nargs="+", type=int, required=True, metavar="N", help="of that file")
    add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")
    add("--out", type=Path, required=True, metavar="FOLDER", help="for line-N.pdf and .png")
    return parser.parse_args(arguments)


def _add_runs(add: Add) -> None:
    """Add the arguments of commands that read runs."""
    add("models", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    add("--data", type=Path, required=True, metavar="FILE", help="pairs")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    options = parse_arguments(arguments)
    options.do(options)
    return 0


if __name__ == "__main__":
    run_script(main)
