"""Cross-validate linear multi-label classifiers with several losses, or evaluate a test file.

    onmt-entmax prepare fetch-multilabel scene --out run/multilabel/data
    onmt-entmax multilabel config/multilabel/scene.yaml
    onmt-entmax multilabel config/multilabel/scene.yaml --test run/multilabel/data/scene-test.arff

Each row of the training file is predicted by a model that was chosen and fitted without it: outer
folds measure F1, inner folds choose L2 and threshold (or scale of the scores). With --test, all
training rows choose and fit. Rows without labels teach nothing and do not count in F1.

Micro and macro F1 each have their own choices. Macro F1 is 2PR / (P + R) of the mean precision P
and the mean recall R of the labels, as in the authors' code (Unbabel/sparsemax on GitHub,
train_multilabel_classifier_lbfgs.py). The mean of the labels' F1, which scikit-learn calls macro,
is of the same predictions.

The folder `out` receives, for each loss, LOSS.json (F1, choices) and LOSS.predictions.jsonl
(predicted labels and nonzero probabilities of each row, with micro F1's choices), and table.md,
which is also printed. With --test, these names have `.test` in them. A loss whose files
are there is not fitted again, so the same command continues after an interrupt.

keys of the configuration, with their defaults (see also config/multilabel)
  name         of the data set, for the table; scene, emotions, birds, cal500 and reuters have the
               paper's figures beside ours
  train        ARFF, if it ends so, or SVMlight file. Of an SVMlight test file, features beyond the
               training file's last one are left out: they would have no weight
  labels       XML file that lists the labels; SVMlight needs none
  out          folder for results
  losses       [logistic, softmax, sparsemax, entmax15], or any alpha as a number
  seeds        number of seeds of the folds: 5
  folds        5, outer and inner
  l2           values of lambda: [1e-4, 1e-3, 0.01, 0.1, 1, 10]
  logistic_thresholds
               of probabilities: [0.05, 0.1, ..., 0.5]
  softmax_thresholds
               of probabilities, in multiples of 1 / number of labels: [1, 2, ..., 10]
  scales       of the scores, for sparse losses: [1, 1.5, ..., 5]
  standardise  true; false keeps features as they are (for sparse files with very many of them)
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from tqdm import tqdm

from onmt_entmax.classify.multilabel import (
    CHOOSERS,
    Grid,
    Loss,
    Outcome,
    cross_validate,
    f1,
    train_and_predict,
)
from onmt_entmax.classify.multilabel_data import Examples, read_examples
from onmt_entmax.classify.settings import read_settings
from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.experiment.table import spread
from onmt_entmax.files import read_bytes, read_object, write_files
from onmt_entmax.options.train import ALPHAS
from onmt_entmax.report.tables import markdown_table
from onmt_entmax.rules import FLAG, Rule, whole

NAMED = {"logistic": None, **{n: a for n, a in ALPHAS.items() if a is not None}}
# Martins and Astudillo (2016), Table 2: micro and macro F1 in %, on test sets.
PAPER = {
    "scene": {"logistic": (70.96, 72.95), "softmax": (74.01, 75.03), "sparsemax": (73.45, 74.57)},
    "emotions": {
        "logistic": (66.75, 68.56),
        "softmax": (67.34, 67.51),
        "sparsemax": (66.38, 66.07),
    },
    "birds": {"logistic": (45.78, 33.77), "softmax": (48.67, 37.06), "sparsemax": (49.44, 39.13)},
    "cal500": {"logistic": (48.88, 24.49), "softmax": (47.46, 23.51), "sparsemax": (48.47, 26.20)},
    "reuters": {"logistic": (81.19, 60.02), "softmax": (79.47, 56.30), "sparsemax": (80.0, 61.27)},
}
_LARGEST = 1 << 32  # bytes of a file


class _Several(Rule):
    """A rule for lists: each value follows it, and none is there twice."""

    def fits(self, value: object) -> bool:
        """Whether a value is such a list."""
        return (
            isinstance(value, list)
            and bool(value)
            and all(map(super().fits, value))
            and len(set(value)) == len(value)
        )

    def __str__(self) -> str:
        return f"must be a list of different values, each of which {super().__str__()}"


@dataclass(frozen=True)
class Settings:
    """A configuration."""

    name: str
    train: str
    out: str
    labels: str | None = None
    losses: tuple[str | float, ...] = ("logistic", "softmax", "sparsemax", "entmax15")
    seeds: int = 5
    folds: int = Grid.folds
    l2: tuple[float, ...] = Grid.l2
    logistic_thresholds: tuple[float, ...] = Grid.logistic_thresholds
    softmax_thresholds: tuple[float, ...] = Grid.softmax_thresholds
    scales: tuple[float, ...] = Grid.scales
    standardise: bool = True

    def grid(self) -> Grid:
        """Return what cross-validation chooses from."""
        return Grid(
            tuple(map(float, self.l2)),
            tuple(map(float, self.logistic_thresholds)),
            tuple(map(float, self.softmax_thresholds)),
            tuple(map(float, self.scales)),
            self.folds,
            self.standardise,
        )

    def chosen_losses(self) -> list[Loss]:
        """Return the losses."""
        return [
            Loss(loss, NAMED[loss]) if isinstance(loss, str) else Loss(f"{loss}-entmax", loss)
            for loss in self.losses
        ]


RULES: Mapping[str, Rule] = {
    "name": Rule(str),
    "train": Rule(str),
    "labels": Rule(str),
    "out": Rule(str),
    "losses": _Several(float, 1, 100, names=tuple(NAMED)),
    "seeds": whole(1, 1000),
    "folds": whole(2, 1000),
    "l2": _Several(float, 1e-9, 1e8),
    "logistic_thresholds": _Several(float, 0, 1),
    "softmax_thresholds": _Several(float, 0, 1e6),
    "scales": _Several(float, 1e-3, 1e3),
    "standardise": FLAG,
}


def run(path: Path, test: Path | None) -> str:
    """Measure all losses of a configuration; return the table.

    Raises:
        UserError: the configuration or a data file cannot be used.
    """
    settings = read_settings(path, Settings, RULES)
    out, labels = Path(settings.out), Path(settings.labels) if settings.labels else None
    if out.exists() and not out.is_dir():
        raise UserError(f"{path}: out: {out} is not a folder")
    inputs = [Path(settings.train), *([labels] if labels else []), *([test] if test else [])]
    digest = hashlib.sha256(b"".join(read_bytes(each, _LARGEST) for each in inputs)).hexdigest()
    training = read_examples(Path(settings.train), labels)
    tested = read_examples(test, labels, training) if test else None
    examples = tested or training
    if empty := len(training) - len(training.labelled()):
        warn(f"{settings.train}: rows without a label teach nothing: {empty} of {len(training)}")
    if absent := int((~training.labels.any(0)).sum()):
        warn(f"{settings.train}: labels that no row has: {absent} of {len(training.names)}")
    mark = ".test" if test else ""
    results = []
    for loss in settings.chosen_losses():
        key = {"data": digest, "grid": asdict(settings.grid()), "seeds": settings.seeds}
        stem = f"{loss.name}{mark}"
        result = _finished(out / f"{stem}.json", key)
        if result is None:
            result, first = measure(settings, loss, training, tested)
            write_files(
                {
                    out / f"{stem}.predictions.jsonl": "".join(prediction_lines(examples, first)),
                    out / f"{stem}.json": json.dumps({**key, **result}, indent=1) + "\n",
                }
            )
        results.append((loss.name, result))
    table = markdown(settings, results, tested is not None, len(examples.labelled()))
    write_files({out / f"table{mark}.md": table})
    return table


def _finished(path: Path, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the result in a file; None if there is none, or of other data or settings."""
    if not path.is_file():
        return None
    content, known = read_object(path), json.loads(json.dumps(key))  # with lists for tuples
    return content if all(content.get(name) == known[name] for name in known) else None


def measure(
    settings: Settings, loss: Loss, training: Examples, tested: Examples | None
) -> tuple[dict[str, Any], Outcome]:
    """Return the F1 and choices of a loss for each seed, and the first outcome for micro F1."""
    begin, grid, outcomes = time.process_time(), settings.grid(), []
    steps = settings.seeds * (1 if tested else settings.folds)
    with tqdm(total=steps, desc=f"{settings.name} {loss.name}", unit="fold", disable=None) as bar:
        for seed in range(1, settings.seeds + 1):
            if tested:
                outcomes.append(train_and_predict(training, tested.features, loss, grid, seed))
                bar.update()
            else:
                outcomes.append(cross_validate(training, loss, grid, seed, bar.update))
    examples = tested or training
    rows = examples.labelled()
    scores = {
        chooser: [f1(examples.labels[rows], each[chooser].predicted[rows]) for each in outcomes]
        for chooser in CHOOSERS
    }
    by_micro = [each["micro_f1"] for each in outcomes]
    result = {
        **{chooser: [score[chooser] for score in scores[chooser]] for chooser in CHOOSERS},
        "label_mean_f1": [score["label_mean_f1"] for score in scores["macro_f1"]],
        "choices": {
            chooser: [[asdict(choice) for choice in each[chooser].choices] for each in outcomes]
            for chooser in CHOOSERS
        },
        "labels_per_row": [float(o.predicted[rows].sum(1).double().mean()) for o in by_micro],
        "processor_seconds": time.process_time() - begin,
    }
    return result, by_micro[0]


def prediction_lines(examples: Examples, outcome: Outcome) -> list[str]:
    """Return a JSON line for each row, with its labels, predictions and nonzero probabilities."""

    def named(flags: Any) -> list[str]:
        return [examples.names[n] for n in flags.nonzero().flatten().tolist()]

    lines = []
    for row in range(len(examples)):
        probabilities = outcome.probabilities[row].tolist()
        lines.append(
            json.dumps(
                {
                    "row": row + 1,
                    "labels": named(examples.labels[row]),
                    "predicted": named(outcome.predicted[row]),
                    "probabilities": {
                        name: round(p, 6)
                        for name, p in zip(examples.names, probabilities, strict=True)
                        if p > 0
                    },
                },
                ensure_ascii=False,
            )
            + "\n"
        )
    return lines


def markdown(
    settings: Settings, results: Sequence[tuple[str, Mapping[str, Any]]], test: bool, rows: int
) -> str:
    """Return the table of a data set: mean and standard deviation over seeds."""
    where = "test" if test else "nested cross-validation"
    head = ["loss", "micro F1", "macro F1", "paper, test: micro / macro", "mean of labels' F1"]
    lines = []
    for name, result in results:
        paper = PAPER.get(settings.name, {}).get(name)
        line = [name, spread(result["micro_f1"]), spread(result["macro_f1"])]
        line += [f"{paper[0]:.2f} / {paper[1]:.2f}" if paper else ""]
        line += [spread(result["label_mean_f1"]), f"{mean(result['labels_per_row']):.2f}"]
        lines.append([*line, f"{result['processor_seconds']:.0f}"])
    return (
        f"{settings.name}, {where}, {counted(rows, 'row')} with labels, F1 in %, "
        f"{counted(settings.seeds, 'seed')}\n\n"
        f"{markdown_table([*head, 'labels a row', 'seconds'], lines)}\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Measure classifiers; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("config", nargs="+", type=Path, help="configurations; each has its own table")
    add("--test", type=Path, help="file to evaluate instead of cross-validation")
    options = parser.parse_args(arguments)
    if options.test and len(options.config) > 1:
        raise UserError("--test: takes one configuration")
    for path in options.config:
        print(run(path, options.test), flush=True)
    return 0
