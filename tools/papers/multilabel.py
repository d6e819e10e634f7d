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
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from onmt_entmax.config import Checked, declared, option
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_object, write_files
from onmt_entmax.rules import FLAG, SHARE, Rule, number, whole
from onmt_entmax.sparse import entmax, entmax_loss
from tools.papers.markdown import markdown_table
from tools.papers.published import published, spread

TOLERANCE = 3e-4  # of L-BFGS: largest entry of the gradient
ITERATIONS = 100
CHOOSERS = ("micro_f1", "macro_f1")  # each takes its own best lambda and setting
NAMED = {"logistic": None, "softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}

# --- data ------------------------------------------------------------------------------------


class Examples(NamedTuple):
    """Rows of features and labels.

    Attributes:
        features: `(rows, features)`, float64; nan is a missing value. A scipy CSR matrix of
            SVMlight, else a numpy array.
        labels: `(rows, labels)`, bool.
        names: of the labels.
    """

    features: Any
    labels: Tensor
    names: tuple[str, ...]

    def take(self, rows: Tensor) -> Examples:
        """Return some of the rows, by index."""
        return Examples(self.features[rows.numpy()], self.labels[rows], self.names)

    def labelled(self) -> Tensor:
        """Return the indices of the rows that have a label."""
        return self.labels.any(1).nonzero().squeeze(1)


def read_examples(path: Path, labels: Path, features: int | None = None) -> Examples:
    """Read a data file: ARFF if its name ends so, else SVMlight.

    Args:
        path: the file.
        labels: Mulan's XML file that lists the labels. In SVMlight, label `n` is the n-th of them
            from 0.
        features: number of features of the training file, for SVMlight.

    Raises:
        UserError: a file cannot be read, or they do not fit each other.
    """
    try:
        from scipy.io import arff
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        raise UserError('scikit-learn is missing: pip install -e ".[papers]"') from None
    try:
        names = [
            element.get("name", "")
            for element in ElementTree.parse(labels).iter()
            if element.tag.rpartition("}")[2] == "label"
        ]
        if not names:
            raise ValueError("no label is listed")
        if path.suffix != ".arff":
            table, rows = load_svmlight_file(
                str(path), n_features=features, multilabel=True, zero_based=False
            )
            flags = torch.zeros(len(rows), len(names), dtype=torch.bool)
            for row, numbers in enumerate(rows):
                if min(numbers, default=0) < 0:
                    raise ValueError(f"label {min(numbers):g}")
                flags[row, [int(number) for number in numbers]] = True
            return Examples(table.tocsr(), flags, tuple(names))
        data, meta = arff.loadarff(str(path))
        place_of = {name.replace("\\", ""): name for name in meta.names()}
        flags = torch.stack([torch.from_numpy(data[place_of[n]] == b"1") for n in names], 1)
    except (
        OSError,
        ElementTree.ParseError,
        arff.ArffError,
        ValueError,
        IndexError,
        NotImplementedError,  # a text attribute
        StopIteration,  # the file ends before @data; it has no message
    ) as error:
        raise UserError(f"{path} or {labels}: cannot be read: {str(error) or 'no @data'}") from None
    except KeyError as error:
        raise UserError(f"{labels}: label {error} is no attribute of {path}") from None
    columns = []
    for name, attribute in place_of.items():
        if name not in names:
            kind, values = meta[attribute]
            if kind == "numeric":
                columns.append(data[attribute])
            else:  # a column for each value, but one of two
                columns += [
                    data[attribute] == value.encode() for value in values[len(values) == 2 :]
                ]
    return Examples(np.stack(columns, 1).astype(np.float64), flags, tuple(names))


# --- losses ----------------------------------------------------------------------------------


class Loss(NamedTuple):
    """A loss with its probabilities and its way to predict labels.

    Attributes:
        name: for messages and tables.
        alpha: of the entmax loss; None is a logistic loss for each label.
    """

    name: str
    alpha: float | None

    @property
    def sparse(self) -> bool:
        """Whether probabilities can be exactly 0, so that the support is the prediction."""
        return self.alpha is not None and self.alpha > 1

    def of(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the losses `(rows,)` of scores `(rows, labels)`.

        Args:
            scores: floating point.
            labels: 0 or 1, in the type of the scores; each row has a 1 unless the loss is logistic.
        """
        if self.alpha is None:
            losses = functional.binary_cross_entropy_with_logits(scores, labels, reduction="none")
            return losses.sum(1)
        target = labels / labels.sum(1, keepdim=True)
        return entmax_loss(scores, target, self.alpha, reduction="none")

    def probabilities(self, scores: Tensor, setting: float) -> Tensor:
        """Return the probabilities of labels `(rows, labels)`; see `predict`."""
        if self.alpha is None:
            return torch.sigmoid(scores)
        return entmax(setting * scores if self.sparse else scores, self.alpha)

    def predict(self, scores: Tensor, setting: float) -> Tensor:
        """Return predicted labels, bool `(rows, labels)`.

        Args:
            scores: `(rows, labels)`.
            setting: of a sparse loss, the scale of the scores, whose support is predicted; of the
                others, the threshold that a probability must exceed.
        """
        return self.probabilities(scores, setting) > (0 if self.sparse else setting)


_SCALE = number(0, 10**6)


@dataclass(frozen=True)
class Grid(Checked):
    """What cross-validation chooses from.

    Attributes:
        l2: values of lambda. These are in the authors' run_lbfgs_sparsemax_dataset.sh; another of
            their scripts, run_lbfgs_dataset.sh, has 1e-9 to 1.
        logistic_thresholds: of logistic probabilities.
        softmax_thresholds: of softmax probabilities, in multiples of 1 / number of labels.
        scales: for losses with sparse probabilities.
        folds: number of folds.
        standardise: shift and scale features to mean 0 and variance 1 on the training rows;
            missing values become the mean. If not, features stay as they are, and sparse.
    """

    l2: Sequence[float] = option((1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0), _SCALE)
    logistic_thresholds: Sequence[float] = option(
        tuple(round(0.05 * n, 2) for n in range(1, 11)), SHARE
    )
    softmax_thresholds: Sequence[float] = option(tuple(map(float, range(1, 11))), _SCALE)
    scales: Sequence[float] = option(tuple(0.5 * n for n in range(2, 11)), _SCALE)
    folds: int = option(5, whole(2, 1000))
    standardise: bool = option(True, FLAG)

    def settings(self, loss: Loss, labels: int) -> Sequence[float]:
        """Return the settings of a loss for a number of labels; see `Loss.predict`."""
        if loss.sparse:
            return self.scales
        if loss.alpha is None:
            return self.logistic_thresholds
        return [multiple / labels for multiple in self.softmax_thresholds]


# --- fitting ---------------------------------------------------------------------------------


class Linear(NamedTuple):
    """A fitted model: weights `(features, labels)`, bias `(labels,)`, and the mean and deviation of
    the features, if they are standardised."""

    weights: Tensor
    bias: Tensor
    moments: tuple[np.ndarray, np.ndarray] | None

    def scores(self, features: Any) -> Tensor:
        """Return the scores `(rows, labels)` of rows."""
        if self.moments is None:
            return torch.from_numpy(features @ self.weights.numpy()) + self.bias
        return standardised(features, *self.moments) @ self.weights + self.bias


def standardised(features: Any, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    """Return features with mean 0 and variance 1; missing ones become the mean."""
    return torch.from_numpy(np.nan_to_num((features - mean) / deviation, copy=False, nan=0.0))


class TrainingSet:
    """A training set in coordinates in which L-BFGS needs few steps.

    With the singular value decomposition :math:`X = U S V^T`, the scores are
    :math:`(U S D) P + b` for weights :math:`V D P`. The scales :math:`D` make the curvature
    about 1 in each direction, whatever lambda is. Sparse features keep their own axes, V = 1.
    """

    def __init__(self, examples: Examples, standardise: bool) -> None:
        self.labels = examples.labels.double()
        self.moments, self.directions, features = None, None, examples.features
        if standardise:
            there = ~np.isnan(features)
            count = np.maximum(there.sum(0), 1)
            average = np.where(there, features, 0).sum(0) / count
            deviation = np.sqrt((np.where(there, features - average, 0) ** 2).sum(0) / count)
            constant = deviation <= 1e-12 * np.abs(average)
            self.moments = average, np.where(constant, 1.0, deviation)
            table = standardised(features, *self.moments)
            left, singular, self.directions = torch.linalg.svd(table, full_matrices=False)
            self.axes = left * singular
            self.curvature = singular**2 / len(table)
        else:
            dense = isinstance(features, np.ndarray)
            parts = None if dense else features.tocoo()
            self.axes = (
                torch.from_numpy(features)
                if parts is None
                else torch.sparse_coo_tensor(
                    torch.from_numpy(np.stack([parts.row, parts.col])),
                    torch.from_numpy(parts.data),
                    parts.shape,
                    check_invariants=True,
                ).coalesce()
            )
            squares = features**2 if dense else features.multiply(features)
            self.curvature = torch.from_numpy(np.asarray(squares.mean(0)).ravel())

    def model(self, parameters: Tensor, bias: Tensor, l2: float) -> Linear:
        """Return the model of parameters `(directions, labels)`."""
        weights = (self.curvature + l2).rsqrt()[:, None] * parameters.detach()
        if self.directions is not None:
            weights = self.directions.T @ weights
        return Linear(weights, bias.detach().clone(), self.moments)


def fit(
    training: Sequence[Examples], loss: Loss, l2: Sequence[float], standardise: bool
) -> Iterator[tuple[float, list[Linear]]]:
    """Yield, for each lambda from the largest to the smallest, a model for each training set.

    Each lambda starts from the parameters of the one before. The sets are separate problems, solved
    side by side, since a step then costs one round of small operations instead of several.

    Args:
        training: all rows have labels.
        loss: what to minimise.
        l2: values of lambda.
        standardise: see `Grid`.
    """
    sets = [TrainingSet(examples, standardise) for examples in training]
    labels = torch.cat([each.labels for each in sets])
    shares = torch.cat([s.labels.new_full((len(s.labels),), 1 / len(s.labels)) for s in sets])
    classes = labels.shape[1]
    matrices = [labels.new_zeros(len(s.curvature), classes, requires_grad=True) for s in sets]
    biases = [labels.new_zeros(classes, requires_grad=True) for _ in sets]
    before: list[Tensor] = []
    for value in sorted(l2, reverse=True):
        scales = [(each.curvature + value).rsqrt() for each in sets]
        with torch.no_grad():
            for matrix, old, new in zip(matrices, before or scales, scales, strict=True):
                matrix *= (old / new)[:, None]
        before = scales
        axes = [
            s.axes if s.axes.is_sparse else s.axes * scale
            for s, scale in zip(sets, scales, strict=True)
        ]
        _minimise(loss, value, axes, scales, matrices, biases, labels, shares)
        yield value, [s.model(m, b, value) for s, m, b in zip(sets, matrices, biases, strict=True)]


def _minimise(
    loss: Loss,
    l2: float,
    axes: Sequence[Tensor],
    scales: Sequence[Tensor],
    matrices: Sequence[Tensor],
    biases: Sequence[Tensor],
    labels: Tensor,
    shares: Tensor,
) -> None:
    """Minimise the sum of the regularised risks of the training sets, in place."""
    optimiser = torch.optim.LBFGS(
        [*matrices, *biases],
        max_iter=ITERATIONS,
        tolerance_grad=TOLERANCE,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        weights = [scale[:, None] * matrix for scale, matrix in zip(scales, matrices, strict=True)]
        scores = [
            axis @ (weight if axis.is_sparse else matrix) + bias
            for axis, weight, matrix, bias in zip(axes, weights, matrices, biases, strict=True)
        ]
        penalty = torch.stack([weight.square().sum() for weight in weights]).sum()
        risk = loss.of(torch.cat(scores), labels) @ shares + l2 / 2 * penalty
        risk.backward()
        return risk

    optimiser.step(closure)


# --- choosing and evaluating -----------------------------------------------------------------


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
    there, chosen = labels.sum(0).double(), predicted.sum(0).double()
    precision = float((hits / chosen.clamp_min(1)).mean())
    recall = float((hits / there.clamp_min(1)).mean())
    total = there + chosen
    return {
        "micro_f1": 200 * float(hits.sum() / total.sum().clamp_min(1)),
        "macro_f1": 200 * precision * recall / ((precision + recall) or 1),
        "label_mean_f1": 200 * float((hits / total.clamp_min(1)).mean()),
    }


def split(rows: int, folds: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return a random partition of row indices into folds of almost equal size: for each fold, the
    rows outside and inside.

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
        pairs = zip(models, folds, strict=True)
        scores = torch.cat([m.scores(examples.features[rows.numpy()]) for m, (_, rows) in pairs])
        for setting in grid.settings(loss, len(examples.names)):
            measured = f1(labels, loss.predict(scores, setting))
            for chooser in CHOOSERS:
                if chooser not in best or measured[chooser] > best[chooser].f1:
                    best[chooser] = Choice(l2, setting, measured[chooser])
    return best


class Outcome(NamedTuple):
    """Predictions for rows that the model has not seen: labels and probabilities `(rows, labels)`,
    those of a sparse loss at the chosen scale, and a choice for each model."""

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
    whole = {
        chooser: Outcome(
            torch.zeros_like(examples.labels), torch.zeros_like(examples.labels).double(), []
        )
        for chooser in CHOOSERS
    }
    for kept, held_out in split(len(examples.labels), grid.folds, seed):
        features = examples.features[held_out.numpy()]
        parts = train_and_predict(examples.take(kept), features, loss, grid, seed)
        for chooser, part in parts.items():
            whole[chooser].predicted[held_out] = part.predicted
            whole[chooser].probabilities[held_out] = part.probabilities
            whole[chooser].choices.extend(part.choices)
    return whole


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
    out, labels, mark = Path(settings.out), Path(settings.labels), ".test" if test else ""
    training = read_examples(Path(settings.train), labels)
    tested = read_examples(test, labels, training.features.shape[1]) if test else None
    examples = tested or training
    if empty := len(training.labels) - len(training.labelled()):
        warnings.warn(
            f"{settings.train}: {counted(empty, 'row')} without a label: not trained on",
            stacklevel=2,
        )
    read = [Path(settings.train), labels, *([test] if test else [])]
    key: dict[str, Any] = {
        "data": hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest(),
        "settings": {name: value for name, value in asdict(settings).items() if name != "losses"},
    }
    rows = []
    for loss in (Loss(str(n), NAMED[n] if isinstance(n, str) else n) for n in settings.losses):
        path = out / f"{loss.name}{mark}.json"
        result = read_object(path) if path.is_file() else {}
        if any(result.get(name) != json.loads(json.dumps(key[name])) for name in key):
            result, first = _measure(settings, loss, training, tested)
            lines = "".join(_prediction_lines(examples, first))
            text = json.dumps({**key, **result}, indent=1) + "\n"
            write_files({path: text, out / f"{loss.name}{mark}.predictions.jsonl": lines})
        paper = published(settings.name).get((loss.name, ""))
        row = [loss.name, *(spread(result[chooser]) for chooser in CHOOSERS)]
        row += [
            f"{paper[0]:.2f} / {paper[1]:.2f}" if paper else "",
            spread(result["label_mean_f1"]),
        ]
        rows.append([*row, f"{mean(result['labels_per_row']):.2f}", f"{result['seconds']:.0f}"])
    head = ["loss", "micro F1", "macro F1", "paper, test: micro / macro", "mean of labels' F1"]
    where = "test" if test else "nested cross-validation"
    table = (
        f"{settings.name}, {where}, {counted(len(examples.labelled()), 'row')} with labels, "
        f"F1 in %, {counted(settings.seeds, 'seed')}\n\n"
        f"{markdown_table([*head, 'labels a row', 'seconds'], rows)}\n"
    )
    write_files({out / f"table{mark}.md": table})
    return table


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
        chooser: [f1(examples.labels[rows], each[chooser].predicted[rows]) for each in outcomes]
        for chooser in CHOOSERS
    }
    by_micro = [each["micro_f1"] for each in outcomes]
    result: dict[str, Any] = {
        **{chooser: [score[chooser] for score in scores[chooser]] for chooser in CHOOSERS},
        "label_mean_f1": [score["label_mean_f1"] for score in scores["macro_f1"]],
        "choices": {c: [[*each[c].choices] for each in outcomes] for c in CHOOSERS},
        "labels_per_row": [float(o.predicted[rows].sum(1).double().mean()) for o in by_micro],
        "seconds": time.process_time() - begin,
    }
    return result, by_micro[0]


def _prediction_lines(examples: Examples, outcome: Outcome) -> Iterator[str]:
    """Yield a JSON line for each row, with its labels, predictions and nonzero probabilities."""

    def named(values: Tensor) -> Mapping[str, float]:
        places = values.nonzero().flatten().tolist()
        return {examples.names[n]: round(float(values[n]), 6) for n in places}

    rows = zip(examples.labels, outcome.predicted, outcome.probabilities, strict=True)
    for row, (labels, predicted, probabilities) in enumerate(rows, 1):
        content = {"row": row, "labels": [*named(labels)], "predicted": [*named(predicted)]}
        content["probabilities"] = named(probabilities)
        yield json.dumps(content, ensure_ascii=False) + "\n"
