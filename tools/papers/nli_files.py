"""Files of sentence pairs with a label: SNLI's JSON lines and SICK's tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from tools.papers.nli_data import LABELS, Pair

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def read_pairs(path: Path, lowercase: bool) -> list[Pair]:
    """Read a file of sentence pairs: SNLI's format if its name ends in .jsonl, else SICK's.

    SNLI's sentences are the tokens of its parse trees; SICK's are split at spaces and punctuation.
    Pairs without a label (SNLI's "-") are left out.

    Args:
        path: the file.
        lowercase: whether to write all words in lower case.

    Raises:
        UserError: the file cannot be read, a line has another form, an unknown label or an empty
            sentence; or there is no labelled pair.
    """
    pairs = []
    rows = _snli(path) if path.suffix == ".jsonl" else _sick(path)
    for row in rows:
        label = row.label.lower()
        if label in LABELS and row.premise and row.hypothesis:
            premise, hypothesis = (
                tuple(word.lower() if lowercase else word for word in sentence)
                for sentence in (row.premise, row.hypothesis)
            )
            pairs.append(Pair(premise, hypothesis, LABELS.index(label), row.line))
        elif label != "-":
            raise UserError(f"{path}:{row.line}: label {row.label!r}, or a sentence without words")
    if not pairs:
        raise UserError(f"{path}: no pair with a label")
    return pairs


class _Row(NamedTuple):
    """A row of a file; its label may be none of `LABELS`, and its sentences empty."""

    line: int
    label: str
    premise: list[str]
    hypothesis: list[str]


def _snli(path: Path) -> Iterator[_Row]:
    """Yield the rows of a file of JSON lines.

    Raises:
        UserError: the file cannot be read, or a line has another form.
    """
    keys = ("gold_label", "sentence1_binary_parse", "sentence2_binary_parse")
    for number, line in enumerate(read_lines(path), 1):
        try:
            content = json.loads(line)
            label, *trees = (str(content[key]) for key in keys)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}:{number}: no line of SNLI ({error})") from None
        premise, hypothesis = (
            [word for word in tree.split() if word not in "()"] for tree in trees
        )
        yield _Row(number, label, premise, hypothesis)


def _sick(path: Path) -> Iterator[_Row]:
    """Yield the rows of a table with tabs between its columns, whose first line names them.

    Raises:
        UserError: the file cannot be read, a column is missing, or a line has other columns.
    """
    lines = read_lines(path)
    names = next(lines, "").replace("entailment_label", "entailment_judgment").split("\t")
    try:
        first, second, label = map(names.index, ("sentence_A", "sentence_B", "entailment_judgment"))
    except ValueError as error:
        raise UserError(f"{path}:1: a column is missing: {error}") from None
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise UserError(f"{path}:{number}: {len(cells)} columns, but line 1 has {len(names)}")
        premise, hypothesis = (_WORD.findall(cells[column]) for column in (first, second))
        yield _Row(number, cells[label], premise, hypothesis)
