r"""Linear multi-label classifiers with logistic, softmax, sparsemax and other entmax losses.

After Martins and Astudillo (2016, section 4.2): scores :math:`z = W x + b`, the loss of scores
against the uniform distribution over a row's labels (for the logistic loss, against each label),
averaged over rows, plus :math:`\frac{\lambda}{2} \lVert W \rVert^2`. Cross-validation chooses
:math:`\lambda` and how scores become labels. The penalty, free of the bias, the grids, the
most steps of L-BFGS and the macro F1 are those of the authors' code (Unbabel/sparsemax on GitHub,
train_multilabel_classifier_lbfgs.py). `python -m tools.papers.sparsemax -h` has the rest.
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
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from onmt_entmax.config import declared, option
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_object, write_files
from onmt_entmax.rules import Rule, whole
from tools.papers.markdown import markdown_table
from tools.papers.multilabel_data import Examples, read_examples
from tools.papers.multilabel_fit import Grid, Loss, fit
from tools.papers.published import published, spread

CHOOSERS = ("micro_f1", "macro_f1")  # each takes its own best lambda and setting
NAMED = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}

# --- choosing --------------------------------------------------------------------------------


def f1(labels: Tensor, predicted: Tensor) -> dict[str, float]:
    """Return three averages of F1 over labels, in %.

    `micro_f1` counts all labels together. `macro_f1` is 2PR / (P + R) of the mean precision P and
    the mean recall R of the labels, as in the authors' code. `label_mean_f1` is the mean of the
    labels' F1, which scikit-learn calls macro. 0/0 is 0: the precision of a label that is never
    predicted, the recall of one that no row has. scikit-learn's functions agree, but take at
    least 25 times as long, and cross-validation calls this for each point of its grid.

    Args:
        labels: bool `(rows, labels)`.
        predicted: likewise.
    """
    hits = (labels & predicted).sum(0).double()
    true, chosen = labels.sum(0).double(), predicted.sum(0).double()
    precision = float((hits / chosen.clamp_min(1)).mean())
    recall = float((hits / true.clamp_min(1)).mean())
    total = true + chosen
    return {
        "micro_f1": 200 * float(hits.sum() / total.sum().clamp_min(1)),
        "macro_f1": 200 * precision * recall / ((precision + recall) or 1),
        "label_mean_f1": 200 * float((hits / total.clamp_min(1)).mean()),
    }


def split(rows: int, folds: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return a random partition of row indices into folds of almost equal size.

    Returns:
        For each fold the rows outside and inside.

    Raises:
        UserError: there are fewer rows than folds.
    """
    if rows < folds:
        raise UserError(f"too few rows with labels for {folds} folds: {rows}")
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    parts = []
    for held_out in order.tensor_split(folds):
        kept = torch.ones(rows, dtype=torch.bool)
        kept[held_out] = False
        parts.append((kept.nonzero().squeeze(1), held_out))
    return parts


class Choice(NamedTuple):
    """What cross-validation chose, and the F1 in % that it had on held-out rows."""

    l2: float
    setting: float
    f1: float


def choose(examples: Examples, loss: Loss, grid: Grid, seed: int) -> dict[str, Choice]:
    """Return the best lambda and setting on held-out rows for each of `CHOOSERS`.

    Of equally good ones, the largest lambda and the first setting.

    Args:
        examples: all rows have labels.
        loss: what to minimise.
        grid: what to choose from.
        seed: of the folds.
    """
    folds = split(len(examples.labels), grid.folds, seed)
    training = [examples.take(kept) for kept, _ in folds]
    labels = torch.cat([examples.labels[held_out] for _, held_out in folds])
    best: dict[str, Choice] = {}
    for l2, models in fit(training, loss, grid.l2, grid.standardise):
        scores = torch.cat(
            [
                model.scores(examples.features[held_out.numpy()])
                for model, (_, held_out) in zip(models, folds, strict=True)
            ]
        )
        for setting in grid.settings(loss, len(examples.names)):
            measured = f1(labels, loss.predict(scores, setting))
            for chooser in CHOOSERS:
                if chooser not in best or measured[chooser] > best[chooser].f1:
                    best[chooser] = Choice(l2, setting, measured[chooser])
    return best


class Outcome(NamedTuple):
    """Predictions for rows that the model has not seen.

    Attributes:
        predicted: labels `(rows, labels)`, bool.
        probabilities: `(rows, labels)`, those of a sparse loss at the chosen scale.
        choices: one for each model.
    """

    predicted: Tensor
    probabilities: Tensor
    choices: list[Choice]


def train_and_predict(
    training: Examples, features: Any, loss: Loss, grid: Grid, seed: int
) -> dict[str, Outcome]:
    """Choose by cross-validation, fit on all training rows, and predict other rows.

    Args:
        training: rows without labels are left out.
        features: of the rows to predict.
        loss: what to minimise.
        grid: what to choose from.
        seed: of the folds.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        UserError: there are too few rows with labels.
    """
    labelled, outcomes = training.take(training.labelled()), {}
    for chooser, choice in choose(labelled, loss, grid, seed).items():
        _, (model,) = next(fit([labelled], loss, [choice.l2], grid.standardise))
        scores = model.scores(features)
        probabilities = loss.probabilities(scores, choice.setting)
        outcomes[chooser] = Outcome(loss.predict(scores, choice.setting), probabilities, [choice])
    return outcomes


def cross_validate(examples: Examples, loss: Loss, grid: Grid, seed: int) -> dict[str, Outcome]:
    """Predict each row by a model that was chosen and fitted without its fold.

    Args:
        examples: all rows; those without labels are predicted, but not trained on.
        loss: what to minimise.
        grid: what to choose from, for each outer fold anew.
        seed: of the outer and of the inner folds.

    Returns:
        An outcome for each of `CHOOSERS`.

    Raises:
        UserError: there are too few rows with labels.
    """
    outcomes = {
        chooser: Outcome(
            torch.zeros_like(examples.labels), torch.zeros_like(examples.labels).double(), []
        )
        for chooser in CHOOSERS
    }
    for kept, held_out in split(len(examples.labels), grid.folds, seed):
        features = examples.features[held_out.numpy()]
        parts = train_and_predict(examples.take(kept), features, loss, grid, seed)
        for chooser, part in parts.items():
            outcomes[chooser].predicted[held_out] = part.predicted
            outcomes[chooser].probabilities[held_out] = part.probabilities
            outcomes[chooser].choices.extend(part.choices)
    return outcomes


# --- a data set ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings(Grid):
    """The configuration of a data set; `python -m tools.papers.sparsemax -h` explains it."""

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
    files = [Path(settings.train), labels, *([test] if test else [])]
    options = {name: value for name, value in asdict(settings).items() if name != "losses"}
    key: dict[str, Any] = {
        "data": hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
        "settings": json.loads(json.dumps(options)),  # as a file of results has it
    }
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


def _result_of(
    settings: Settings,
    loss: Loss,
    training: Examples,
    tested: Examples | None,
    key: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the result of a loss: that of its file if it has the same key, else measured anew."""
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
    begin, outcomes = time.process_time(), []
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
