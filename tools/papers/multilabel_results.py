"""The results of a loss of `multilabel.py` on a data set, which stay in files.

A result has two files, and is measured anew if one of them is missing, or if its data or its
settings have changed. LOSS.json has, beside the key of the result:

    micro_f1, macro_f1  by seed, in %; what cross-validation chose is best for this F1 (`CHOOSERS`)
    label_mean_f1       by seed, in %, with the choices for macro F1
    choices             by F1, then by seed: a list with the `Choice` of each model
    labels_per_row      mean number of predicted labels by seed, with the choices for micro F1
    seconds             of processor time, for all seeds

LOSS.predictions.jsonl has the predictions of the first seed, with the choices for micro F1. On a
test file, the names begin with LOSS.test instead.
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
from tools.papers.multilabel import (
    CHOOSERS,
    MACRO_F1,
    MICRO_F1,
    Outcome,
    cross_validate,
    train_and_predict,
)
from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_f1 import f1
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_settings import Settings


def key_of(settings: Settings, test: Path | None) -> dict[str, Any]:
    """Return what a result depends on, besides the loss, as a file of results has it."""
    files = {"train": Path(settings.train), "labels": Path(settings.labels)}
    if test:
        files["test"] = test
    options = {name: value for name, value in asdict(settings).items() if name != "losses"}
    return {
        "data": {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()
        },
        "settings": json.loads(json.dumps(options)),  # tuples are lists there
    }


def result_of(
    settings: Settings,
    loss: Loss,
    training: Examples,
    tested: Examples | None,
    key: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the result of a loss: that of its files if it has the same key, else measured anew.

    Args:
        settings: the configuration.
        loss: to measure.
        training: rows.
        tested: rows of a test file; None: cross-validation.
        key: see `key_of`.

    Returns:
        The content of LOSS.json; a new result is without the key.
    """
    stem = Path(settings.out) / f"{loss.name}{'.test' if tested else ''}"
    path = stem.with_name(f"{stem.name}.json")
    predictions = stem.with_name(f"{stem.name}.predictions.jsonl")
    if path.is_file() and predictions.is_file():
        recorded = read_object(path)
        if all(recorded.get(name) == value for name, value in key.items()):
            return recorded
    begin = time.process_time()
    outcomes = list(_outcomes(settings, loss, training, tested))
    examples = tested or training
    result = {**_figures(examples, outcomes), "seconds": time.process_time() - begin}
    lines = "".join(_prediction_lines(examples, outcomes[0][MICRO_F1]))
    text = json.dumps({**key, **result}, indent=1) + "\n"
    write_files({path: text, predictions: lines})
    return result


def _outcomes(
    settings: Settings, loss: Loss, training: Examples, tested: Examples | None
) -> Iterator[dict[str, Outcome]]:
    """Yield for each seed of the folds the outcomes of a loss, one for each of `CHOOSERS`."""
    for seed in tqdm(range(1, settings.seeds + 1), f"{settings.name} {loss.name}", disable=None):
        if tested is None:
            yield cross_validate(training, loss, settings, seed)
        else:
            yield train_and_predict(training, tested.features, loss, settings, seed)


def _figures(examples: Examples, outcomes: Sequence[Mapping[str, Outcome]]) -> dict[str, Any]:
    """Return the figures of a result, see above, without its seconds.

    Rows without labels do not count.

    Args:
        examples: whose labels were predicted.
        outcomes: for each seed, an outcome for each of `CHOOSERS`.
    """
    rows = examples.labelled()
    labels = examples.labels[rows]
    for_micro = [of_seed[MICRO_F1].predicted[rows] for of_seed in outcomes]
    for_macro = [of_seed[MACRO_F1].predicted[rows] for of_seed in outcomes]
    macro_scores = [f1(labels, predicted) for predicted in for_macro]
    return {
        "choices": {
            chooser: [of_seed[chooser].choices for of_seed in outcomes] for chooser in CHOOSERS
        },
        MICRO_F1: [f1(labels, predicted)[MICRO_F1] for predicted in for_micro],
        "labels_per_row": [float(predicted.sum(1).double().mean()) for predicted in for_micro],
        MACRO_F1: [scores[MACRO_F1] for scores in macro_scores],
        "label_mean_f1": [scores["label_mean_f1"] for scores in macro_scores],
    }


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
