"""Complete OpenNMT-py's subword transforms.

`sentencepiece` and `bpe` get an inverse, and `onmt_tokenize` no longer samples outside of training.
`build_transforms` takes the classes in `REPLACED` instead of OpenNMT-py's of the same names.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from onmt_entmax.libraries import import_pyonmttok
from onmt_entmax.opennmt import (
    BPETransform,
    DefaultTokens,
    ONMTTokenizerTransform,
    SentencePieceTransform,
)

SUBWORD_FILES = tuple(
    f"{side}_subword_{kind}" for side in ("src", "tgt") for kind in ("model", "vocab")
)
"""Options that name files of subword models"""


class SentencePiece(SentencePieceTransform):
    """`sentencepiece` with an inverse, which OpenNMT-py lacks."""

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target pieces, given between spaces; `<unk>` stays as a word."""
        model = self.load_models["tgt"]
        unknown = DefaultTokens.UNK
        runs = [
            " ".join(run) if is_unknown else model.decode(list(run))
            for is_unknown, run in groupby(translated.split(), unknown.__eq__)
        ]
        # Pieces that the model lacks, such as those of a copied source word, keep their mark.
        return " ".join(" ".join(runs).replace("▁", " ").split())


class Bpe(BPETransform):
    """`bpe` of subword-nmt with an inverse, which OpenNMT-py lacks."""

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target pieces, given between spaces."""
        joiner = self.load_models["tgt"].separator
        return f"{translated} ".replace(f"{joiner} ", "").rstrip(" ")


class OnmtTokenizer(ONMTTokenizerTransform):
    """`onmt_tokenize` that samples subwords (`src_subword_alpha`) only in training.

    OpenNMT-py's transform also samples in validation and translation: its `apply` does not pass
    `is_train` on to `_tokenize`. So `apply` keeps it here for the call of `_tokenize` inside it.
    """

    _samples = False

    def warm_up(self, vocabs: Any = None) -> None:
        """Load the tokenisers.

        Raises:
            MissingLibraryError: pyonmttok is not installed.
            BrokenLibraryError: it cannot be imported.
        """
        import_pyonmttok("train with the transform sentencepiece or bpe instead of onmt_tokenize")
        super().warm_up(vocabs)

    def apply(
        self, example: Any, is_train: bool = False, stats: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Return the example with both sides in subwords."""
        self._samples = is_train
        return super().apply(example, is_train, stats, **more)

    def _tokenize(self, tokens: Iterable[str], side: str = "src", is_train: bool = False) -> Any:
        """Return the subwords of some tokens; `is_train` is never given."""
        return self.load_models[side].tokenize(" ".join(tokens), training=self._samples)[0]


REPLACED = {"sentencepiece": SentencePiece, "bpe": Bpe, "onmt_tokenize": OnmtTokenizer}
SUBWORD_TRANSFORMS = frozenset(REPLACED)
"""Names of the transforms that divide words into subwords; all of them read `SUBWORD_FILES`"""
