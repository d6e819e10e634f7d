"""The commands `nli train`, `nli evaluate` and `nli figures` of `sparsemax.py`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import refuse_overwriting, write_files
from onmt_entmax.report.tables import aligned_table
from tools.papers import nli_training
from tools.papers.arguments import names_of
from tools.papers.nli_batches import encode
from tools.papers.nli_data import LABELS, Pair
from tools.papers.nli_files import read_pairs
from tools.papers.nli_picture import draw_premise
from tools.papers.nli_predictions import Measures, Prediction, measure, predict
from tools.papers.nli_run import load
from tools.papers.nli_settings import Settings
from tools.papers.pictures import set_style, write
from tools.papers.settings_file import read_settings
from tools.papers.spread import spread


def train(options: argparse.Namespace) -> None:
    """Train a classifier: `nli train`."""
    chosen = {"attention": options.attention, "seed": options.seed}
    changes = {name: value for name, value in chosen.items() if value is not None}
    settings = read_settings(options.config, Settings, **changes)
    best = nli_training.train(
        settings, options.out, lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(f"{options.out}: best epoch: {best}, on the pairs that chose it")


class RunPredictions(NamedTuple):
    """A run's settings, and its predictions for the pairs of a file."""

    settings: Settings
    pairs: list[Pair]
    predictions: list[Prediction]


def predict_file(run: Path, data: Path) -> RunPredictions:
    """Return a run's predictions for the pairs of a file.

    Args:
        run: folder of the run.
        data: file of pairs.

    Raises:
        UserError: the file cannot be read, or the folder is not a run.
    """
    settings, words, model = load(run)
    pairs = read_pairs(data, settings.lowercase)
    return RunPredictions(settings, pairs, predict(model, settings, encode(pairs, words)))


def evaluate(options: argparse.Namespace) -> None:
    """Print the measures of runs on the pairs of a file: `nli evaluate`."""
    refuse_overwriting([options.data], [options.output])
    runs = [predict_file(folder, options.data) for folder in options.runs]
    measures = [measure(*run) for run in runs]
    if options.output:
        write_files({options.output: _json_lines(runs[-1])})
    print(_summary(runs[-1].pairs))  # those of other runs differ at most in the case of letters
    print(_table_of_runs(options.runs, runs, measures))
    if len(runs) > 1:
        print("\n" + _table_of_means(runs, measures))


def _table_of_runs(
    folders: Sequence[Path], runs: Sequence[RunPredictions], measures: Sequence[Measures]
) -> str:
    """Return a table with a line for each run."""
    rows = [["run", "attention", "seed", "accuracy", "attended"]]
    for folder, run, run_measures in zip(folders, runs, measures, strict=True):
        attention, seed = str(run.settings.attention), str(run.settings.seed)
        rows.append([str(folder), attention, seed, *_cells([run_measures])])
    return aligned_table(rows)


def _table_of_means(runs: Sequence[RunPredictions], measures: Sequence[Measures]) -> str:
    """Return a table with means and standard deviations of the runs with each kind of attention."""
    by_attention: dict[str, list[Measures]] = defaultdict(list)
    for run, run_measures in zip(runs, measures, strict=True):
        by_attention[str(run.settings.attention)].append(run_measures)
    rows = [["attention", "runs", "accuracy", "attended"]]
    rows += [
        [kind, str(len(same_kind)), *_cells(same_kind)] for kind, same_kind in by_attention.items()
    ]
    return aligned_table(rows)


def _summary(pairs: Sequence[Pair]) -> str:
    """Return the number of pairs, the length of premises, and the share of the commonest label."""
    words = sum(len(pair.premise) for pair in pairs) / len(pairs)
    label, count = Counter(pair.label for pair in pairs).most_common(1)[0]
    return (
        f"{counted(len(pairs), 'pair')}, {words:.2f} words a premise, "
        f"{100 * count / len(pairs):.2f} % {LABELS[label]}"
    )


def _json_lines(run: RunPredictions) -> str:
    """Return a JSON line for each pair, with its prediction."""
    records = [
        {**pair._asdict(), **prediction._asdict()}
        for pair, prediction in zip(run.pairs, run.predictions, strict=True)
    ]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _cells(measures: Sequence[Measures]) -> list[str]:
    """Return the table cells of runs: their mean accuracy and attended words, with deviations."""
    accuracies = [run_measures.accuracy for run_measures in measures]
    attended = [run_measures.attended for run_measures in measures]
    return [spread(accuracies), spread([words for words in attended if words is not None])]


def figures(options: argparse.Namespace) -> None:
    """Draw the attention of runs to the premises of some lines: `nli figures`.

    Raises:
        UserError: a line has no pair, or a run no attention.
    """
    folders = zip(names_of(options.names, options.runs), options.runs, strict=True)
    runs = {name: predict_file(run, options.data) for name, run in folders}
    pairs = next(iter(runs.values())).pairs  # as the first run reads them, in its case
    index_of = {pair.line: index for index, pair in enumerate(pairs)}
    for line in options.lines:
        if line not in index_of:
            raise UserError(f"{options.data}: line {line} has no pair with a label")
        index = index_of[line]
        pair = pairs[index]
        predictions = {name: run.predictions[index] for name, run in runs.items()}
        for name, prediction in predictions.items():
            if prediction.attention is None:
                raise UserError(f"{name}: has no attention to draw")
        set_style([*pair.premise, *pair.hypothesis, *predictions])
        print(write(draw_premise(pair, predictions), options.out / f"line-{line}"))
