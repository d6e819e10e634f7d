"""Read multi-label data: Mulan's ARFF with its list of labels in XML, and SVMlight.

The ARFF reader is our own: scipy's reads no sparse rows, and no maintained package does.
"""

from __future__ import annotations

import importlib.util
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import read_bytes, read_lines

_LARGEST_XML = 1 << 24  # bytes
_MOST_DENSE = 1 << 29  # numbers of a dense matrix: 4 GiB
_LARGEST_LABEL = 1 << 53  # of SVMlight: scikit-learn reads labels as floats

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_WORD}|[^,]*?)\s*(,|$)")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CELL = re.compile(rf"\s*(\d+)\s+({_WORD}|[^,\s]+)\s*(,|$)")


@dataclass(frozen=True)
class Examples:
    """Rows of features and labels.

    Attributes:
        features: `(rows, features)`, float64; nan is a missing value. A scipy CSR matrix if the
            file has sparse rows, else a numpy array.
        labels: `(rows, labels)`, bool.
        names: of the labels.
        columns: names of the features, numbers in SVMlight; they must be those of the training
            file.
    """

    features: Any
    labels: Tensor
    names: tuple[str, ...]
    columns: Sequence[str | int]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Tensor) -> Examples:
        """Return some of the rows, by index."""
        return Examples(self.features[rows.numpy()], self.labels[rows], self.names, self.columns)

    def labelled(self) -> Tensor:
        """Return the indices of the rows that have a label."""
        return self.labels.any(1).nonzero().squeeze(1)


def read_examples(path: Path, labels: Path | None, like: Examples | None = None) -> Examples:
    """Read a data file: ARFF if its name ends so, else SVMlight.

    Args:
        path: the file.
        labels: XML file that lists the labels, which ARFF needs. In SVMlight, label `n` is the
            n-th of them from 0; without a list, the numbers are the names.
        like: the training data, whose labels and features the file must have. From SVMlight,
            features beyond the last one there are left out: they would have no weight.

    Raises:
        UserError: a line is malformed, the files do not fit each other, or scikit-learn, which
            brings scipy, is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise UserError('scikit-learn is missing: pip install "onmt_entmax[classify]"')
    if path.suffix.lower() == ".arff":
        if labels is None:
            raise UserError(f"{path}: ARFF does not say which attributes are labels; set `labels`")
        examples = _arff(path, labels)
    else:
        examples = _svmlight(path, None if labels is None else read_label_names(labels), like)
    if not len(examples):
        raise UserError(f"{path}: has no rows")
    if like is not None and examples.columns != like.columns:
        raise UserError(f"{path}: has other features than the training file")
    return examples


def issparse(features: Any) -> bool:
    """Whether features are a scipy matrix, not a numpy array."""
    return hasattr(features, "tocsr")


def read_label_names(path: Path) -> list[str]:
    """Return the labels that Mulan's XML file lists, in its order.

    Raises:
        UserError: it is no such file, or lists fewer than two labels, or one twice.
    """
    content = read_bytes(path, _LARGEST_XML)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # may stand for far more text
        raise UserError(f"{path}: a list of labels has no DOCTYPE")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise UserError(f"{path}: not XML: {error}") from None
    names = [
        element.get("name", "") for element in root.iter() if element.tag.endswith("}label")
    ] or [element.get("name", "") for element in root.iter("label")]
    for name in names:
        if not name or names.count(name) > 1:
            raise UserError(f"{path}: label {name!r} is listed twice or has no name")
    if len(names) < 2:
        found = counted(len(names), "label")
        raise UserError(f"{path}: lists {found}; a distribution needs at least two")
    return names


# --- ARFF ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Attribute:
    """A column of an ARFF file; `values` are those of a nominal one, None is numeric."""

    name: str
    values: tuple[str, ...] | None

    def number(self, text: str) -> float:
        """Return a value as a number: a nominal one as its place in the list.

        Raises:
            ValueError: it is neither `?`, nor a number in digits, nor in the list.
        """
        if text == "?":
            return math.nan
        if self.values is None:
            if not _NUMBER.fullmatch(text):  # float() also takes nan and 1_0
                raise ValueError
            return float(text)
        return float(self.values.index(_unquoted(text)))

    def columns(self) -> list[str]:
        """Return the names of the feature columns that it becomes."""
        if self.values is None or len(self.values) <= 2:
            return [self.name]
        return [f"{self.name}={value}" for value in self.values]


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _attribute(line: str, place: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise UserError(f"{place}: not `@attribute NAME TYPE`")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, None)
    if kind.startswith("{") and kind.endswith("}"):
        return _Attribute(name, tuple(map(_unquoted, _split(kind[1:-1]))))
    raise UserError(
        f"{place}: {name!r} is of type {kind.split()[0]!r}; only numeric and nominal attributes "
        "can be features or labels"
    )


def _split(text: str) -> list[str]:
    """Return the values between commas, still quoted."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    found, start = [], 0
    while match := _VALUE.match(text, start):
        found.append(match[1])
        start = match.end()
        if not match[2]:
            return found
    return []


def _cells(line: str, count: int) -> list[tuple[int, str]]:
    """Return column and text of the values of a row; of a sparse one, only those it names.

    Raises:
        ValueError: says what is wrong.
    """
    if not line.startswith("{"):
        values = _split(line)
        if len(values) != count:
            raise ValueError(f"{counted(len(values), 'value')} for {counted(count, 'attribute')}")
        return list(enumerate(values))
    if not line.endswith("}"):
        raise ValueError("a sparse row ends in }")
    cells, text, start = [], line[1:-1].strip(), 0
    while start < len(text):
        match = _CELL.match(text, start)
        if match is None:
            raise ValueError(f"not `INDEX VALUE, ...`: {text[start : start + 30]!r}")
        cells.append((int(match[1]), match[2]))
        start = match.end()
    places = [place for place, _ in cells]
    if len(set(places)) < len(places) or (places and max(places) >= count):
        raise ValueError(f"an index twice, or not below {count}, the number of attributes")
    return cells


def _rows(
    path: Path, lines: Iterator[tuple[int, str]], attributes: Sequence[_Attribute]
) -> Iterator[tuple[list[int], list[float], bool]]:
    """Yield columns and numbers of each row, and whether the row is sparse.

    Raises:
        UserError: names the line.
    """
    for number, line in lines:
        try:
            cells = _cells(line, len(attributes))
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        values = []
        for place, text in cells:
            try:
                values.append(attributes[place].number(text))
            except ValueError:
                raise UserError(
                    f"{path}:{number}: {text!r} is no value of attribute {attributes[place].name!r}"
                ) from None
            if math.isinf(values[-1]):
                raise UserError(f"{path}:{number}: {attributes[place].name!r} is infinite")
        yield [place for place, _ in cells], values, line.startswith("{")


def _arff(path: Path, labels: Path) -> Examples:
    """Read an ARFF file; nominal features of more than two values become a column for each."""
    from scipy.sparse import csr_matrix

    attributes: list[_Attribute] = []
    lines = (
        (number, line.strip())
        for number, line in enumerate(read_lines(path), 1)
        if line.strip() and not line.lstrip().startswith("%")
    )
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            attributes.append(_attribute(line, f"{path}:{number}"))
        elif word != "@relation":
            raise UserError(f"{path}:{number}: {word!r} before @data")
    else:
        raise UserError(f"{path}: has no @data")
    names = read_label_names(labels)
    place_of = {attribute.name: place for place, attribute in enumerate(attributes)}
    if len(place_of) < len(attributes):
        raise UserError(f"{path}: an attribute is declared twice")
    for name in names:
        if name not in place_of:
            raise UserError(
                f"{labels}: label {name!r} is no attribute of {path}{nearest(name, place_of)}"
            )
        if set(attributes[place_of[name]].values or ("0", "1")) != {"0", "1"}:
            raise UserError(f"{path}: label {name!r} must have the values 0 and 1")
    data, indices, pointers, sparse = [], [], [0], False
    for columns, values, short in _rows(path, lines, attributes):
        data += values
        indices += columns
        pointers.append(len(data))
        sparse |= short
    shape = (len(pointers) - 1, len(attributes))
    # In a sparse row, a nominal attribute that is left out has its first value, whose place is 0.
    table = csr_matrix((data, indices, pointers), shape, dtype=np.float64)
    return Examples(
        _features(path, table, [a for a in attributes if a.name not in names], place_of, sparse),
        torch.stack([_label(path, table, attributes[place_of[n]], place_of[n]) for n in names], 1),
        tuple(names),
        tuple(c for a in attributes if a.name not in names for c in a.columns()),
    )


def _label(path: Path, table: Any, attribute: _Attribute, place: int) -> Tensor:
    """Return the rows `(rows,)` that have a label."""
    column = table[:, [place]].toarray()[:, 0]
    wrong = ~np.isin(column, (0, 1))
    if wrong.any():
        row = int(wrong.argmax()) + 1
        what = "missing" if np.isnan(column[row - 1]) else "neither 0 nor 1"
        raise UserError(f"{path}: label {attribute.name!r} of row {row} is {what}")
    return torch.from_numpy(column == (attribute.values or ("0", "1")).index("1"))


def _features(
    path: Path, table: Any, attributes: Sequence[_Attribute], place_of: dict[str, int], sparse: bool
) -> Any:
    """Return the columns of the features, as `Examples` describes them."""
    from scipy.sparse import csr_matrix, hstack

    if not attributes:
        raise UserError(f"{path}: every attribute is a label; there are no features")
    blocks: list[Any] = []
    run: list[int] = []  # columns that stay as they are are taken together

    def end() -> None:
        if run:
            blocks.append(table[:, run])
            run.clear()

    for attribute in attributes:
        place = place_of[attribute.name]
        if len(attribute.columns()) == 1:
            run.append(place)
            continue
        end()
        column = table[:, [place]].toarray()
        one_hot = (column == np.arange(len(attribute.values or ()))).astype(np.float64)
        blocks.append(csr_matrix(np.where(np.isnan(column), np.nan, one_hot)))
    end()
    features = hstack(blocks, "csr")
    return features if sparse else dense(features, path)


def dense(features: Any, path: object) -> np.ndarray:
    """Return features as a numpy array.

    Raises:
        UserError: it would be too large.
    """
    rows, columns = features.shape
    if rows * columns > _MOST_DENSE:
        raise UserError(
            f"{path}: too large to be standardised: {counted(rows, 'row')} of "
            f"{counted(columns, 'feature')}; set `standardise: false`"
        )
    return np.asarray(features.toarray() if issparse(features) else features)


# --- SVMlight --------------------------------------------------------------------------------


def _svmlight(path: Path, names: list[str] | None, like: Examples | None) -> Examples:
    """Read an SVMlight file with `label,label index:value ...` in each line."""
    from sklearn.datasets import load_svmlight_file

    try:
        with open(path, "rb") as file:
            # Indices begin at 1, as the format says.
            features, found = load_svmlight_file(file, multilabel=True, zero_based=False)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path}: not SVMlight: {' '.join(str(error).split())}") from None
    if not np.isfinite(features.data).all():
        raise UserError(f"{path}: a feature is infinite or not a number")
    if like is not None:
        features.resize(len(found), len(like.columns))
    numbered = [
        [_label_number(n, f"{path}: row {k}") for n in row] for k, row in enumerate(found, 1)
    ]
    known = names or (
        list(like.names) if like else [str(n) for n in sorted({n for row in numbered for n in row})]
    )
    if len(known) < 2:
        labels_found = counted(len(known), "label")
        raise UserError(f"{path}: has {labels_found}; a distribution needs at least two")
    if features.shape[1] * len(known) > _MOST_DENSE:
        raise UserError(
            f"{path}: {counted(features.shape[1], 'feature')} and "
            f"{counted(len(known), 'label')} have too many weights"
        )
    place_of = {name if names is None else str(n): n for n, name in enumerate(known)}
    labels = torch.zeros(len(found), len(known), dtype=torch.bool)
    for row, numbers in enumerate(numbered):
        for number in numbers:
            if str(number) not in place_of:
                raise UserError(f"{path}: row {row + 1} has label {number}, which is not listed")
            labels[row, place_of[str(number)]] = True
    return Examples(features.tocsr(), labels, tuple(known), range(1, features.shape[1] + 1))


def _label_number(number: float, place: str) -> int:
    if not number.is_integer() or abs(number) >= _LARGEST_LABEL:
        raise UserError(f"{place} has label {number}; labels are whole numbers below 2^53")
    return int(number)
