"""The losses of `multilabel.py` on a data set: a table of their F1, and files of predictions.

`python -m tools.papers.sparsemax multilabel` runs it, and describes its configurations.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from torch import Tensor
from tqdm import tqdm

from onmt_entmax.config import declared, option
from onmt_entmax.errors import counted
from onmt_entmax.files import read_object, write_files
from onmt_entmax.rules import Rule, whole
from tools.papers.markdown import markdown_table
from tools.papers.multilabel import CHOOSERS, Outcome, cross_validate, f1, train_and_predict
from tools.papers.multilabel_data import Examples, read_examples
from tools.papers.multilabel_loss import Grid, Loss
from tools.papers.published import published, spread

NAMED = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}


@dataclass(frozen=True)
class Settings(Grid):
    """The configuration of a data set.

    Attributes:
        name: of the data set; those of the paper have its figures beside ours.
        train: data file.
        labels: Mulan's list of labels.
        out: folder for results.
        seeds: number of seeds of the folds.
        losses: names or alphas.
    """

    name: str = option("", Rule(str))
    train: str = option(None, Rule(str), required=True)
    labels: str = option(None, Rule(str), required=True)
    out: str = option(None, Rule(str), required=True)
    seeds: int = option(5, whole(1, 1000))
    losses: Sequence[str | float] = option(tuple(NAMED), Rule(float, 1, 10**6, names=tuple(NAMED)))

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the lists that are empty."""
        for name in declared(Settings):
            if getattr(self, name) in ([], ()):
                yield name, "must not be empty"


def evaluate(settings: Settings, test: Path | None) -> str:
    """Measure all losses of a configuration, except those that are done; return the table.

    Raises:
        UserError: a data file cannot be used.
    """
    labels = Path(settings.labels)
    training = read_examples(Path(settings.train), labels)
    tested = read_examples(test, labels, training.features.shape[1]) if test else None
    unlabelled = len(training.labels) - len(training.labelled())
    if unlabelled:
        warnings.warn(
            f"{settings.train}: {counted(unlabelled, 'row')} without a label: not trained on",
            stacklevel=2,
        )
    key = _key(settings, test)
    rows = []
    for name in settings.losses:
        loss = Loss(str(name), NAMED[name] if isinstance(name, str) else name)
        result = _result_of(settings, loss, training, tested, key)
        rows.append(_table_row(settings, loss, result))
    head = ["loss", "micro F1", "macro F1", "paper, test: micro / macro", "mean of labels' F1"]
    where = "test" if test else "nested cross-validation"
    examples = tested or training
    table = (
        f"{settings.name}, {where}, {counted(len(examples.labelled()), 'row')} with labels, "
        f"F1 in %, {counted(settings.seeds, 'seed')}\n\n"
        f"{markdown_table([*head, 'labels a row', 'seconds'], rows)}\n"
    )
    write_files({Path(settings.out) / f"table{'.test' if test else ''}.md": table})
    return table


def _key(settings: Settings, test: Path | None) -> dict[str, Any]:
    """Return what a result depends on, besides the loss, as a file of results has it."""
    files = [Path(settings.train), Path(settings.labels)]
    if test:
        files.append(test)
    options = {name: value for name, value in asdict(settings).items() if name != "losses"}
    return {
        "data": hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
        "settings": json.loads(json.dumps(options)),  # tuples are lists there
    }


def _result_of(
    settings: Settings,
    loss: Loss,
    training: Examples,
    tested: Examples | None,
    key: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the result of a loss: that of its file if it has the same key, else measured anew.

    Args:
        settings: the configuration.
        loss: to measure.
        training: rows.
        tested: rows of a test file; None: cross-validation.
        key: see `_key`.
    """
    stem = Path(settings.out) / f"{loss.name}{'.test' if tested else ''}"
    path = stem.with_name(f"{stem.name}.json")
    recorded = read_object(path) if path.is_file() else {}
    if all(recorded.get(name) == value for name, value in key.items()):
        return recorded
    result, first = _measure(settings, loss, training, tested)
    lines = "".join(_prediction_lines(tested or training, first))
    text = json.dumps({**key, **result}, indent=1) + "\n"
    write_files({path: text, stem.with_name(f"{stem.name}.predictions.jsonl"): lines})
    return result


def _table_row(settings: Settings, loss: Loss, result: Mapping[str, Any]) -> list[str]:
    """Return the row of a loss, with the published figures of the data set."""
    paper = published(settings.name).get((loss.name, ""))
    return [
        loss.name,
        *(spread(result[chooser]) for chooser in CHOOSERS),
        f"{paper[0]:.2f} / {paper[1]:.2f}" if paper else "",
        spread(result["label_mean_f1"]),
        f"{mean(result['labels_per_row']):.2f}",
        f"{result['seconds']:.0f}",
    ]


def _measure(
    settings: Settings, loss: Loss, training: Examples, tested: Examples | None
) -> tuple[dict[str, Any], Outcome]:
    """Return the F1 and choices of a loss for each seed, and the first outcome for micro F1."""
    begin = time.process_time()
    outcomes = []
    for seed in tqdm(range(1, settings.seeds + 1), f"{settings.name} {loss.name}", disable=None):
        if tested:
            features = tested.features
            outcomes.append(train_and_predict(training, features, loss, settings, seed))
        else:
            outcomes.append(cross_validate(training, loss, settings, seed))
    examples = tested or training
    rows = examples.labelled()
    scores = {
        chooser: [
            f1(examples.labels[rows], of_seed[chooser].predicted[rows]) for of_seed in outcomes
        ]
        for chooser in CHOOSERS
    }
    by_micro = [of_seed["micro_f1"] for of_seed in outcomes]
    result: dict[str, Any] = {
        **{chooser: [score[chooser] for score in scores[chooser]] for chooser in CHOOSERS},
        "label_mean_f1": [score["label_mean_f1"] for score in scores["macro_f1"]],
        "choices": {
            chooser: [[*of_seed[chooser].choices] for of_seed in outcomes] for chooser in CHOOSERS
        },
        "labels_per_row": [
            float(outcome.predicted[rows].sum(1).double().mean()) for outcome in by_micro
        ],
        "seconds": time.process_time() - begin,
    }
    return result, by_micro[0]


def _prediction_lines(examples: Examples, outcome: Outcome) -> Iterator[str]:
    """Yield a JSON line for each row, with its labels, predictions and nonzero probabilities."""
    rows = zip(examples.labels, outcome.predicted, outcome.probabilities, strict=True)
    for row, (labels, predicted, probabilities) in enumerate(rows, 1):
        content = {
            "row": row,
            "labels": [*_nonzero(labels, examples.names)],
            "predicted": [*_nonzero(predicted, examples.names)],
            "probabilities": _nonzero(probabilities, examples.names),
        }
        yield json.dumps(content, ensure_ascii=False) + "\n"


def _nonzero(values: Tensor, names: Sequence[str]) -> dict[str, float]:
    """Return the nonzero values of a row `(labels,)` by the names of their labels."""
    indices = values.nonzero().flatten().tolist()
    return {names[index]: round(float(values[index]), 6) for index in indices}
