"""Pretrained word vectors, read from text files in the format of GloVe or word2vec."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import torch
from torch import Tensor
from tqdm import tqdm

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted


def read_vectors(path: Path, kind: str, vocabulary: Vocabulary, size: int) -> dict[int, Tensor]:
    """Read the vectors of the tokens of a vocabulary, by their ids.

    A line is a word and its numbers, separated by spaces; the first line for a word counts.

    Args:
        path: the file.
        kind: `GloVe`, or `word2vec`, whose first line gives the numbers of words and columns.
        vocabulary: vectors of other words are skipped.
        size: length of a vector.

    Raises:
        UserError: the file cannot be read, its vectors have another size, or a line has another
            form.
    """
    vectors: dict[int, Tensor] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            for number, word, values in _rows(path, file, kind, size):
                if word not in vocabulary:
                    continue
                (index,) = vocabulary.encode([word])
                if index not in vectors:
                    vectors[index] = _vector(path, number, values, size)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not text in UTF-8; a binary file must be converted") from None
    return vectors


def _rows(path: Path, file: IO[str], kind: str, size: int) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the number, word and columns of each line."""
    first = file.readline().split()
    if not first:
        raise UserError(f"{path}: line 1 is empty; expected a word and {counted(size, 'number')}")
    is_header = len(first) == 2
    if is_header != (kind == "word2vec"):
        other = "GloVe" if kind == "word2vec" else "word2vec"
        raise UserError(f"{path}: line 1 is not of {kind}; is embeddings_type {other}?")
    found = int(first[1]) if is_header and first[1].isdecimal() else len(first) - 1
    if found != size:
        numbers = counted(found, "number")
        raise UserError(f"{path}: vectors of {numbers}, but word_vec_size is {size}")
    if not is_header:
        yield 1, first[0], first[1:]
    for number, line in enumerate(tqdm(file, unit="vector", disable=None), 2):
        columns = line.rstrip().rsplit(" ", size)
        yield number, columns[0], columns[1:]


def _vector(path: Path, number: int, values: list[str], size: int) -> Tensor:
    try:
        vector = torch.tensor([float(value) for value in values])
    except ValueError:
        vector = torch.zeros(0)
    if len(vector) != size or not bool(vector.isfinite().all()):
        wanted = counted(size, "finite number")
        raise UserError(f"{path}: line {number}: expected a word and {wanted}")
    return vector


def fill(table: Tensor, vectors: dict[int, Tensor]) -> None:
    """Copy vectors into the rows of an embedding table, ``(tokens, size)``."""
    with torch.no_grad():
        for index, vector in vectors.items():
            table[index] = vector
