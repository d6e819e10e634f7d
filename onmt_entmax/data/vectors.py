"""Read pretrained word vectors from text files in the format of GloVe or word2vec."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines


def read_vectors(path: Path, kind: str, vocabulary: Vocabulary, size: int) -> dict[int, Tensor]:
    """Return the vectors of the tokens of a vocabulary, by their ids; some tokens may have none.

    A line is a word and its numbers, separated by spaces; the first line for a word counts.

    Args:
        path: the file.
        kind: `GloVe`, or `word2vec`, whose first line gives the numbers of words and columns.
        vocabulary: vectors of other words are skipped.
        size: length of a vector.

    Raises:
        UserError: the file cannot be read, its vectors have another size, or the line of a word of
            the vocabulary has another form.
    """
    texts = tqdm(read_lines(path), unit="vector", disable=None)
    lines: Iterator[tuple[int, str]] = enumerate(texts, 1)
    first_number, first_line = next(lines, (1, ""))
    _check_first_line(path, first_line, kind, size)
    if kind == "GloVe":  # its first line has a vector, too
        lines = chain([(first_number, first_line)], lines)
    vectors: dict[int, Tensor] = {}
    for number, line in lines:
        # From the right, since some words have spaces. A blank line has no word.
        word, *values = line.rstrip().rsplit(None, size) or [""]
        if word not in vocabulary:
            continue
        try:
            vector = torch.tensor([float(value) for value in values])
        except ValueError:
            vector = torch.zeros(0)
        if len(vector) != size or not bool(vector.isfinite().all()):
            wanted = counted(size, "finite number")
            raise UserError(f"{path}: line {number}: expected a word and {wanted}")
        vectors.setdefault(vocabulary.encode([word])[0], vector)
    return vectors


def _check_first_line(path: Path, line: str, kind: str, size: int) -> None:
    """Check the first line of a file: a word and its numbers, or the header of word2vec.

    A header has two numbers: how many words the file has, and how many columns.

    Args:
        path: the path of the file, for the error.
        line: its first line.
        kind: format of the file, `GloVe` or `word2vec`.
        size: length of a vector.

    Raises:
        UserError: the line is empty or of the other kind, or vectors have another size.
    """
    columns = line.split()
    if not columns:
        raise UserError(f"{path}: line 1 is empty; expected a word and {counted(size, 'number')}")
    is_header = len(columns) == 2
    if is_header != (kind == "word2vec"):
        other = "GloVe" if kind == "word2vec" else "word2vec"
        raise UserError(f"{path}: line 1 is not of {kind}; is embeddings_type {other}?")
    length = int(columns[1]) if is_header and columns[1].isdecimal() else len(columns) - 1
    if length != size:
        numbers = counted(length, "number")
        raise UserError(f"{path}: vectors of {numbers}, but word_vec_size is {size}")
