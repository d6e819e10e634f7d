"""Read the pairs of sentences for `prepare files`: the training, validation and test parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onmt_entmax.cli.parallel_folder import ParallelFolder
from onmt_entmax.data.normalisation import normalise
from onmt_entmax.data.parallel import Pairs, hold_out, read_pairs
from onmt_entmax.data.vocabulary import refuse_symbols
from onmt_entmax.errors import UserError, counted

HELD_OUT = 1000
"""Validation pairs, if the user gives none"""


@dataclass(frozen=True)
class Corpus:
    """The pairs of all parts, and how many training pairs were left out.

    `read_corpus` leaves out training pairs that share a sentence with the validation part, and
    `with_fitting` leaves out unfit ones, which are known after subwords were learned.

    Attributes:
        parts: the pairs of each part, normalised.
        read: number of training pairs in the files.
        shared_with_val: training pairs left out because a held-out pair has one of their sentences.
        unfit: training pairs left out as empty, too long or too different in length.
    """

    parts: Mapping[str, Pairs]
    read: int
    shared_with_val: int
    unfit: int = 0

    def with_fitting(self, fitting: Pairs) -> "Corpus":
        """Return the corpus with these training pairs alone; the others count as unfit."""
        unfit = len(self.parts["train"]) - len(fitting)
        return replace(self, parts={**self.parts, "train": fitting}, unfit=unfit)

    def counts(self) -> dict[str, int]:
        """Return all numbers of pairs, for `prepare.json`."""
        return {
            "read": self.read,
            "shared_with_val": self.shared_with_val,
            "unfit": self.unfit,
            **{part: len(pairs) for part, pairs in self.parts.items()},
        }

    def counts_text(self) -> str:
        """Return how many pairs each part has, and how many were left out."""
        counts = self.counts()
        return (
            f"{counted(counts['train'], 'pair')} to train on, {counts['val']} to validate on, "
            f"{counts.get('test', 0)} to test on; left out: {self.shared_with_val} with a sentence "
            f"of the development set, {self.unfit} empty, too long or too different in length"
        )


def read_corpus(
    inputs: Mapping[str, Sequence[Path]],
    folder: ParallelFolder,
    *,
    val_size: int | None,
    seed: int,
) -> Corpus:
    """Return the pairs of all parts; hold out training pairs if there is no validation part.

    Args:
        inputs: the two files of each part.
        folder: has the languages and subwords, which decide how texts are normalised.
        val_size: training pairs to hold out for the validation part; None: `HELD_OUT`.
        seed: seed of the choice of these pairs.

    Raises:
        UserError: a file cannot be read or has no lines, a pair outside the training part has an
            empty side, or a token is a symbol of the model, such as `<unk>`.
    """
    parts = {part: _read(part, sides, folder) for part, sides in inputs.items()}
    all_pairs = len(parts["train"])
    if "val" in parts:
        return Corpus(parts, all_pairs, shared_with_val=0)
    # A pair that shares a sentence with a held-out pair is in neither list.
    others, held_out = hold_out(parts["train"], val_size or HELD_OUT, seed)
    return Corpus(
        {**parts, "train": others, "val": held_out},
        all_pairs,
        shared_with_val=all_pairs - len(held_out) - len(others),
    )


def _read(part: str, paths: Sequence[Path], folder: ParallelFolder) -> Pairs:
    """Return the pairs of a part, normalised and checked.

    Raises:
        UserError: a file cannot be read or has no lines, a pair outside the training part has an
            empty side, or a token is a symbol of the model.
    """
    pairs = _normalised(read_pairs(*paths), folder)
    if not pairs:
        raise UserError(f"{paths[0]} and {paths[1]}: no lines")
    if part != "train":  # training pairs with an empty side are left out later, and counted
        _refuse_blank(pairs, paths)
    if folder.subwords.is_tokenised:  # other text is split at punctuation, so no token is `<unk>`
        _refuse_symbols(pairs, paths)
    return pairs


def _normalised(pairs: Pairs, folder: ParallelFolder) -> Pairs:
    """Return pairs with each side normalised by the rules of its language."""
    source_language, target_language = folder.languages
    are_tokens = folder.subwords.is_tokenised
    return [
        (
            normalise(source, source_language, are_tokens),
            normalise(target, target_language, are_tokens),
        )
        for source, target in pairs
    ]


def _refuse_blank(pairs: Pairs, paths: Sequence[Path]) -> None:
    """Refuse pairs with an empty side.

    Raises:
        UserError: names the line of the first such pair.
    """
    for line, pair in enumerate(pairs, start=1):
        if not all(pair):
            raise UserError(f"{paths[0]} and {paths[1]}: line {line} is empty on one side")


def _refuse_symbols(pairs: Pairs, paths: Sequence[Path]) -> None:
    """Refuse tokens that are symbols of the model, such as `<unk>`.

    Raises:
        UserError: names the first line with such a token.
    """
    for line, pair in enumerate(pairs, start=1):
        for path, text in zip(paths, pair, strict=True):
            refuse_symbols(text.split(), f"{path}: line {line}")
