"""Results of a loss on a multi-label data set, which are kept in two files.

LOSS.json has a `Result` and its key: the data and settings that it depends on.
LOSS.predictions.jsonl has the predictions of the first seed, with the choices for micro F1. On a
test file, the names begin with LOSS.test instead. A result is measured anew if a file is missing or
the key has changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

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
from tools.papers.multilabel_data import Examples, read_training_and_test
from tools.papers.multilabel_f1 import f1
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_settings import Settings


class Result(TypedDict):
    """Figures of a loss on a data set, for each seed of the folds.

    Attributes:
        choices: what cross-validation chose, by the F1 that it is best for (`CHOOSERS`) and by
            seed: a list with the `Choice` of each model.
        micro_f1: micro F1 in percent, with the choices for micro F1.
        labels_per_row: mean number of predicted labels, with the choices for micro F1.
        macro_f1: macro F1 in percent, with the choices for macro F1.
        label_mean_f1: mean of the labels' F1 in percent, with the choices for macro F1.
        seconds: processor time for all seeds.
    """

    choices: dict[str, list[Any]]
    micro_f1: list[float]
    labels_per_row: list[float]
    macro_f1: list[float]
    label_mean_f1: list[float]
    seconds: float


def key_of(settings: Settings, test: Path | None) -> dict[str, Any]:
    """Return what a result depends on, apart from the loss, in the form that its file has."""
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


class ResultFiles(NamedTuple):
    """The files of a result.

    Attributes:
        result: JSON of the key and the result.
        predictions: JSON lines.
    """

    result: Path
    predictions: Path

    @classmethod
    def of(cls, settings: Settings, loss: Loss, *, on_test: bool) -> ResultFiles:
        """Return the files of a loss in the folder of a data set."""
        name = f"{loss.name}.test" if on_test else loss.name
        folder = Path(settings.out)
        return cls(folder / f"{name}.json", folder / f"{name}.predictions.jsonl")

    def read(self, key: Mapping[str, Any]) -> Result | None:
        """Return the result; None if a file is missing, or the result has another key or form."""
        if not (self.result.is_file() and self.predictions.is_file()):
            return None
        recorded = read_object(self.result)
        names = Result.__annotations__
        if any(recorded.get(name) != value for name, value in key.items()):
            return None
        if not recorded.keys() >= names.keys():  # written by another version
            return None
        result: Any = {name: recorded[name] for name in names}
        return result

    def write(self, key: Mapping[str, Any], result: Result, predictions: Iterable[str]) -> None:
        """Write the result with its key, and the lines of the predictions."""
        text = json.dumps({**key, **result}, indent=1) + "\n"
        write_files({self.result: text, self.predictions: "".join(predictions)})


class DataSet(NamedTuple):
    """A data set with its configuration, which has a result for each loss.

    Attributes:
        settings: the configuration.
        training: rows of the training file.
        tested: rows of the test file; None: nested cross-validation on the training rows.
        key: what its results depend on, see `key_of`.
    """

    settings: Settings
    training: Examples
    tested: Examples | None
    key: Mapping[str, Any]

    @classmethod
    def read(cls, settings: Settings, test: Path | None) -> DataSet:
        """Read the files of a configuration, and a test file.

        Raises:
            UserError: a file cannot be read, or they do not fit each other.
        """
        training, tested = read_training_and_test(Path(settings.train), Path(settings.labels), test)
        return cls(settings, training, tested, key_of(settings, test))

    @property
    def predicted(self) -> Examples:
        """The rows that are predicted."""
        return self.tested or self.training


def result_of(data: DataSet, loss: Loss) -> Result:
    """Return the recorded result of a loss; if there is none, measure and record it."""
    files = ResultFiles.of(data.settings, loss, on_test=data.tested is not None)
    result = files.read(data.key)
    if result is not None:
        return result
    begin = time.process_time()
    outcomes = list(_outcomes(data, loss))
    result = _result(data.predicted, outcomes, time.process_time() - begin)
    files.write(data.key, result, _prediction_lines(data.predicted, outcomes[0][MICRO_F1]))
    return result


def _outcomes(data: DataSet, loss: Loss) -> Iterator[dict[str, Outcome]]:
    """Yield for each seed of the folds the outcomes of a loss, one for each of `CHOOSERS`."""
    settings = data.settings
    for seed in tqdm(range(1, settings.seeds + 1), f"{settings.name} {loss.name}", disable=None):
        if data.tested is None:
            yield cross_validate(data.training, loss, settings, seed)
        else:
            yield train_and_predict(data.training, data.tested.features, loss, settings, seed)


def _result(
    examples: Examples, outcomes: Sequence[Mapping[str, Outcome]], seconds: float
) -> Result:
    """Return the figures of predictions; rows without labels do not count.

    Args:
        examples: rows that were predicted.
        outcomes: an outcome for each of `CHOOSERS`, for each seed.
        seconds: processor time.
    """
    rows = examples.labelled()
    labels = examples.labels[rows]
    for_micro = [by_chooser[MICRO_F1].predicted[rows] for by_chooser in outcomes]
    for_macro = [by_chooser[MACRO_F1].predicted[rows] for by_chooser in outcomes]
    macro_scores = [f1(labels, predicted) for predicted in for_macro]
    return {
        "choices": {
            chooser: [by_chooser[chooser].choices for by_chooser in outcomes]
            for chooser in CHOOSERS
        },
        "micro_f1": [f1(labels, predicted)[MICRO_F1] for predicted in for_micro],
        "labels_per_row": [float(predicted.sum(1).double().mean()) for predicted in for_micro],
        "macro_f1": [scores[MACRO_F1] for scores in macro_scores],
        "label_mean_f1": [scores["label_mean_f1"] for scores in macro_scores],
        "seconds": seconds,
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
