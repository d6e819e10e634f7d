"""Learn subwords for `prepare files`, and leave out training pairs with too many of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onmt_entmax.cli.messages import note
from onmt_entmax.cli.parallel_folder import ParallelFolder
from onmt_entmax.data.parallel import Pairs
from onmt_entmax.data.subword_learning import Segmenter, Subwords, bpe_library
from onmt_entmax.errors import UserError, counted, first_line
from onmt_entmax.files import temporary_folder
from onmt_entmax.libraries import BrokenLibraryError, MissingLibraryError


@dataclass(frozen=True)
class LengthLimits:
    """Limits on the subwords of a training pair.

    Attributes:
        most: largest number of subwords of a side.
        ratio: largest ratio of the longer side's number of subwords to the shorter side's.
    """

    most: int
    ratio: float

    def allow(self, lengths: Sequence[int]) -> bool:
        """Return whether to keep a pair whose sides have these numbers of subwords."""
        shorter, longer = min(lengths), max(lengths)
        return 0 < longer <= self.most and longer <= self.ratio * shorter


@dataclass(frozen=True)
class SubwordResult:
    """Learned subwords, and the training pairs within the limits.

    Attributes:
        models: contents of the subword models, by the path that each will have.
        fitting: the training pairs that are kept.
    """

    models: dict[Path, bytes]
    fitting: Pairs


def available_subword_type(chosen: str | None) -> str:
    """Return the type of subwords to learn.

    Args:
        chosen: the type that the user names. None: `bpe`, or `sentencepiece` with a note if the
            library of `bpe` is not installed, or cannot be imported.

    Raises:
        MissingLibraryError: the user names `bpe`, and its library is not installed.
        BrokenLibraryError: the user names `bpe`, and its library cannot be imported.
    """
    if chosen == "sentencepiece":
        return chosen
    try:
        bpe_library()
    except (MissingLibraryError, BrokenLibraryError) as error:
        if chosen:
            raise
        problem = "is not installed"
        if isinstance(error, BrokenLibraryError):
            problem = f"cannot be imported ({first_line(error.__cause__ or error)})"
        note(f"pyonmttok {problem}: --subword_type sentencepiece")
        return "sentencepiece"
    return "bpe"


def learn_subwords(folder: ParallelFolder, pairs: Pairs, limits: LengthLimits) -> SubwordResult:
    """Learn subwords from the training pairs without an empty side; write nothing to the folder.

    Args:
        folder: has the type of subwords, and the paths that the models will have.
        pairs: all training pairs.
        limits: limits on the pairs that are kept.

    Raises:
        UserError: there is too little text, or no pair is within the limits.
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
    """Learn the subwords of both sides, write their models, and return a segmenter for each side.

    Args:
        subwords: type and number of subwords, and whether both sides share them.
        models: file for the model of each side.
        pairs: the training pairs.
    """
    sides = [[pair[side] for pair in pairs] for side in range(2)]
    if subwords.joint:
        return [subwords.learn(sides, models[0])] * 2
    return [subwords.learn([side], model) for side, model in zip(sides, models, strict=True)]


def _lengths(pair: Sequence[str], segmenters: Sequence[Segmenter]) -> list[int]:
    """Return the number of subwords of both sides."""
    return [len(segmenter.divide(text)) for segmenter, text in zip(segmenters, pair, strict=True)]
