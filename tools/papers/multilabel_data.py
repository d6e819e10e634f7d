"""Data sets with several labels a row, as Mulan and LIBSVM publish them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.errors import UserError


class Examples(NamedTuple):
    """Rows of features and labels.

    Attributes:
        features: `(rows, features)`, float64; nan is a missing value. A scipy CSR matrix of
            SVMlight, else a numpy array.
        labels: `(rows, labels)`, bool.
        names: names of the labels.
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
        names = _label_names(labels)
        if path.suffix == ".arff":
            return _arff_examples(names, *arff.loadarff(str(path)))
        table, rows = load_svmlight_file(
            str(path), n_features=features, multilabel=True, zero_based=False
        )
        return Examples(table.tocsr(), _flags(rows, len(names)), names)
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


def read_training_and_test(
    train: Path, labels: Path, test: Path | None
) -> tuple[Examples, Examples | None]:
    """Return the rows of the training file, and those of the test file, if there is one.

    Args:
        train: the training file, which sets the number of features of both.
        labels: Mulan's XML file that lists the labels.
        test: the test file.

    Raises:
        UserError: a file cannot be read, or they do not fit each other.
    """
    training = read_examples(train, labels)
    if test is None:
        return training, None
    return training, read_examples(test, labels, features=training.features.shape[1])


def _arff_examples(names: tuple[str, ...], data: Any, meta: Any) -> Examples:
    """Return the rows of an ARFF file.

    Args:
        names: names of the labels.
        data: a structured array, as scipy reads it.
        meta: its attributes, as scipy reads them.

    Raises:
        KeyError: a label is not among the attributes.
    """
    attributes = {name.replace("\\", ""): name for name in meta.names()}
    columns = [torch.from_numpy(data[attributes[name]] == b"1") for name in names]
    others = [attribute for name, attribute in attributes.items() if name not in names]
    return Examples(_feature_columns(data, meta, others), torch.stack(columns, 1), names)


def _label_names(path: Path) -> tuple[str, ...]:
    """Return the labels that Mulan's XML file lists.

    Raises:
        ValueError: there are none.
    """
    names = tuple(
        element.get("name", "")
        for element in ElementTree.parse(path).iter()
        if element.tag.rpartition("}")[2] == "label"  # behind the namespace
    )
    if not names:
        raise ValueError("no label is listed")
    return names


def _flags(rows: Sequence[Sequence[float]], labels: int) -> Tensor:
    """Return labels `(rows, labels)`, bool, from the numbers of each row's labels.

    Raises:
        ValueError: a number is negative.
        IndexError: a number is too large.
    """
    flags = torch.zeros(len(rows), labels, dtype=torch.bool)
    for row, numbers in enumerate(rows):
        if min(numbers, default=0) < 0:
            raise ValueError(f"label {min(numbers):g}")
        flags[row, [int(number) for number in numbers]] = True
    return flags


def _feature_columns(data: Any, meta: Any, attributes: Sequence[str]) -> np.ndarray:
    """Return features `(rows, features)` in float64 from attributes of an ARFF file.

    A nominal attribute has a column for each of its values; one of two values has a single column.
    """
    columns = []
    for attribute in attributes:
        kind, values = meta[attribute]
        if kind == "numeric":
            columns.append(data[attribute])
        else:
            listed = values[1:] if len(values) == 2 else values
            columns += [data[attribute] == value.encode() for value in listed]
    return np.stack(columns, 1).astype(np.float64)
