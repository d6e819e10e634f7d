"""Sentence pairs of natural language inference: SNLI's JSON lines, and tables such as SICK's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.opennmt import DefaultTokens
from onmt_entmax.parsing import ParseError, parse_json
from onmt_entmax.rules import shown

LABELS = ("entailment", "neutral", "contradiction")
NO_MAJORITY = "-"  # SNLI's label of a pair on which the annotators disagreed
# A hypothesis begins with a delimiter, as in the code of Martins and Astudillo.
SPECIALS = (DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS)
SNLI_KEYS = ("gold_label", "sentence1_binary_parse", "sentence2_binary_parse")
# SemEval's files have the first name of the label, the complete corpus the second.
SICK_COLUMNS = ("sentence_A", "sentence_B", "entailment_judgment")
SICK_LABEL = "entailment_label"
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class PairsError(UserError):
    """A file of sentence pairs that cannot be read; the message names file and line."""


@dataclass(frozen=True)
class Pair:
    """A premise, a hypothesis and their label, an index of `LABELS`; `line` is that of the file."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: int
    line: int


class Pairs(NamedTuple):
    """The pairs of a file, and how many others have no label (SNLI)."""

    pairs: list[Pair]
    unlabelled: int


def read_pairs(path: Path, lowercase: bool) -> Pairs:
    """Read a file of sentence pairs: SNLI's format if its name ends in .jsonl, else SICK's.

    SNLI's sentences are the tokens of its parse trees; SICK's are split at spaces and punctuation.

    Args:
        path: the file.
        lowercase: whether to write all words in small letters.

    Raises:
        FileError: the file cannot be read.
        PairsError: a line has another form, an unknown label or an empty sentence; or there is no
            labelled pair.
    """
    rows = _snli(path) if path.suffix == ".jsonl" else _sick(path)
    pairs, unlabelled = [], 0
    for line, label, *sentences in rows:
        if label == NO_MAJORITY:
            unlabelled += 1
            continue
        if label.lower() not in LABELS:
            raise PairsError(f"{path}:{line}: label {shown(label)}, not {', '.join(LABELS)}")
        if not all(sentences):
            raise PairsError(f"{path}:{line}: a sentence without words")
        premise, hypothesis = (
            tuple(word.lower() if lowercase else word for word in words) for words in sentences
        )
        pairs.append(Pair(premise, hypothesis, LABELS.index(label.lower()), line))
    if not pairs:
        raise PairsError(f"{path}: no pair with a label")
    return Pairs(pairs, unlabelled)


_Row = tuple[int, str, list[str], list[str]]  # line, label, words of both sentences


def _snli(path: Path) -> Iterator[_Row]:
    """Yield the rows of a file of JSON lines."""
    for number, line in enumerate(read_lines(path), 1):
        try:
            content = parse_json(line)
        except ParseError as error:
            raise PairsError(f"{path}:{number}: {error}") from None
        if not isinstance(content, dict):
            raise PairsError(f"{path}:{number}: {shown(content)}, not an object of SNLI")
        values = [content.get(key) for key in SNLI_KEYS]
        for key, value in zip(SNLI_KEYS, values, strict=True):
            if not isinstance(value, str):
                raise PairsError(f"{path}:{number}: {key} is missing, or is no text")
        label, *trees = map(str, values)
        premise, hypothesis = ([w for w in tree.split() if w not in "()"] for tree in trees)
        yield number, label, premise, hypothesis


def _sick(path: Path) -> Iterator[_Row]:
    """Yield the rows of a table with tabs between its columns, whose first line names them."""
    lines = read_lines(path)
    names = next(lines, "").split("\t")
    names = [SICK_COLUMNS[2] if name == SICK_LABEL else name for name in names]
    for column in SICK_COLUMNS:
        if names.count(column) != 1:
            raise PairsError(f"{path}:1: no single column {column} among {shown(names)}")
    first, second, label = map(names.index, SICK_COLUMNS)
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(names):
            found = counted(len(cells), "column")
            raise PairsError(f"{path}:{number}: {found}, but line 1 has {len(names)}")
        yield number, cells[label], _WORD.findall(cells[first]), _WORD.findall(cells[second])


def hold_out(pairs: Sequence[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Split pairs by premise, so that no premise is in both parts; every call splits alike.

    Args:
        pairs: in any number.
        share: of the pairs that goes to the second part, at least.

    Raises:
        PairsError: a part would be empty.
    """
    premises = list(dict.fromkeys(pair.premise for pair in pairs))
    Random(1).shuffle(premises)
    counts = Counter(pair.premise for pair in pairs)
    chosen: set[tuple[str, ...]] = set()
    held = 0
    for premise in premises:
        if held >= share * len(pairs):
            break
        chosen.add(premise)
        held += counts[premise]
    kept = [pair for pair in pairs if pair.premise not in chosen]
    if not kept or not chosen:
        raise PairsError(f"too few different premises to hold out {share:g}: {len(premises)}")
    return kept, [pair for pair in pairs if pair.premise in chosen]


def count_words(pairs: Sequence[Pair], min_frequency: int) -> Vocabulary:
    """Return the vocabulary of some pairs, the most frequent words first."""
    counts = Counter(word for pair in pairs for word in (*pair.premise, *pair.hypothesis))
    return Vocabulary.from_counts(counts, SPECIALS, len(counts), min_frequency)


class Batch(NamedTuple):
    """Pairs as tensors; sentences are padded.

    Attributes:
        premises: ``(batch, length)`` ids.
        premise_lengths: ``(batch,)``.
        hypotheses: ``(batch, length)`` ids, the first that of the delimiter.
        hypothesis_lengths: ``(batch,)``, with the delimiter.
        labels: ``(batch,)``.
    """

    premises: Tensor
    premise_lengths: Tensor
    hypotheses: Tensor
    hypothesis_lengths: Tensor
    labels: Tensor


Encoded = tuple[Tensor, Tensor, int]  # ids of premise and hypothesis, label


def encode(pairs: Sequence[Pair], vocabulary: Vocabulary) -> list[Encoded]:
    """Return the ids of pairs."""
    return [
        (
            torch.tensor(vocabulary.encode(pair.premise)),
            torch.tensor([vocabulary.bos, *vocabulary.encode(pair.hypothesis)]),
            pair.label,
        )
        for pair in pairs
    ]


def make_batch(encoded: Sequence[Encoded]) -> Batch:
    """Pad encoded pairs with the id 0, which nothing reads."""
    premises, hypotheses, labels = zip(*encoded, strict=True)
    padded, lengths = [], []
    for sentences in (premises, hypotheses):
        padded.append(pad_sequence(list(sentences), batch_first=True))
        lengths.append(torch.tensor([len(sentence) for sentence in sentences]))
    return Batch(padded[0], lengths[0], padded[1], lengths[1], torch.tensor(labels))
