"""Subwords that `prepare files` learns, and the training pairs that fit them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onmt_entmax.cli.parallel_folder import ParallelFolder
from onmt_entmax.data.parallel import Pairs
from onmt_entmax.data.subword_learning import Segmenter, Subwords, bpe_library
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import temporary_folder
from onmt_entmax.libraries import MissingLibraryError


@dataclass(frozen=True)
class LengthLimits:
    """Which training pairs are kept, by the subwords of their sides.

    Attributes:
        most: subwords that a side may have.
        ratio: how many times the shorter side's subwords the longer side may have.
    """

    most: int
    ratio: float

    def allow(self, lengths: Sequence[int]) -> bool:
        """Return whether a pair whose sides have these numbers of subwords is kept."""
        shorter, longer = min(lengths), max(lengths)
        return 0 < longer <= self.most and longer <= self.ratio * shorter


@dataclass(frozen=True)
class SubwordResult:
    """Learned subwords.

    Attributes:
        models: contents of the subword models, by the path that each will have.
        fitting: the training pairs that are kept.
    """

    models: dict[Path, bytes]
    fitting: Pairs


def available_subword_type(chosen: str | None) -> str:
    """Return the type of subwords to learn: `bpe`, if its library is installed.

    Args:
        chosen: the type that the user names, if any.

    Raises:
        MissingLibraryError: the user chose `bpe`, and the library is not installed.
    """
    if chosen == "sentencepiece":
        return chosen
    try:
        bpe_library()
    except MissingLibraryError:
        if chosen:
            raise
        print("note: pyonmttok is not installed: --subword_type sentencepiece", file=sys.stderr)
        return "sentencepiece"
    return "bpe"


def learn_subwords(folder: ParallelFolder, pairs: Pairs, limits: LengthLimits) -> SubwordResult:
    """Learn subwords from the training pairs whose sides are not empty.

    Nothing is written into the folder.

    Raises:
        UserError: no pair is left, or there is too little text.
    """
    subwords = folder.subwords
    filled = [pair for pair in pairs if all(pair)]
    symbols = counted(subwords.symbols, f"{subwords.kind} subword")
    print(f"learning {symbols} from {counted(len(filled), 'pair')}", file=sys.stderr, flush=True)
    with temporary_folder() as temporary:
        # The libraries learn into files.
        learned = replace(folder, out=temporary).subword_models
        segmenters = _learned_segmenters(subwords, learned, filled)
        fitting = [pair for pair in filled if limits.allow(_lengths(pair, segmenters))]
        models = {
            path: model.read_bytes()
            for path, model in zip(folder.subword_models, learned, strict=True)
        }
    if not fitting:
        limit = counted(limits.most, "subword")
        raise UserError(
            f"no training pair is left: of {len(pairs)}, {len(pairs) - len(filled)} have an "
            f"empty side, and the others are longer than {limit} or too different in length"
        )
    return SubwordResult(models, fitting)


def _learned_segmenters(
    subwords: Subwords, models: Sequence[Path], pairs: Pairs
) -> list[Segmenter]:
    """Learn the subwords of both sides into their models; return what divides texts by them."""
    sides = [[pair[side] for pair in pairs] for side in range(2)]
    if subwords.joint:
        return [subwords.learn(sides, models[0])] * 2
    return [subwords.learn([side], model) for side, model in zip(sides, models, strict=True)]


def _lengths(pair: Sequence[str], segmenters: Sequence[Segmenter]) -> list[int]:
    """Return the number of subwords of both sides."""
    return [len(segmenter.divide(text)) for segmenter, text in zip(segmenters, pair, strict=True)]
