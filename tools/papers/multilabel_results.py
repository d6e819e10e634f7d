"""The results of a loss of `multilabel.py` on a data set, which stay in files.

A result is measured anew if its data or its settings have changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor
from tqdm import tqdm

from onmt_entmax.files import read_object, write_files
from tools.papers.multilabel import CHOOSERS, Outcome, cross_validate, train_and_predict
from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_f1 import f1
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_settings import Settings


def key_of(settings: Settings, test: Path | None) -> dict[str, Any]:
    """Return what a result depends on, besides the loss, as a file of results has it."""
    files = [Path(settings.train), Path(settings.labels)]
    if test:
        files.append(test)
    options = {name: value for name, value in asdict(settings).items() if name != "losses"}
    return {
        "data": hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
        "settings": json.loads(json.dumps(options)),  # tuples are lists there
    }


def result_of(
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
        key: see `key_of`.
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


def _measure(
    settings: Settings, loss: Loss, training: Examples, tested: Examples | None
) -> tuple[dict[str, Any], Outcome]:
    """Return the F1 and choices of a loss for each seed, and the first outcome for micro F1."""
    begin = time.process_time()
    outcomes: list[dict[str, Outcome]] = []  # by seed, then by chooser
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
