"""From one line of text to what a model reads: transforms, placeholders, ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.opennmt import Transform, TransformPipe
from onmt_entmax.text.batch import Example
from onmt_entmax.text.copying import Copying, copying
from onmt_entmax.text.vocabulary import Vocabularies


@dataclass(frozen=True)
class EncodedSource:
    """A source as a model reads it.

    Attributes:
        words: its tokens after the transforms; none of a blank line, or where they leave nothing.
        copied: what the placeholders of its unknown characters stand for.
        example: its ids.
    """

    words: tuple[str, ...]
    copied: Copying
    example: Example


@dataclass(frozen=True)
class Reader:
    """What a model does to texts before it reads them.

    Attributes:
        vocabularies: of the model.
        pipe: OpenNMT-py's transforms; texts are tokens between spaces where there are none.
    """

    vocabularies: Vocabularies
    pipe: TransformPipe = field(default_factory=lambda: TransformPipe.build_from([]))

    @property
    def merges(self) -> bool:
        """Whether undoing the transforms may make one text of several outputs."""
        return any(
            type(transform).apply_reverse is not Transform.apply_reverse
            for transform in self.pipe.transforms
        )

    def preprocess(self, source: str, target: str = "") -> tuple[list[str], list[str]]:
        """What the transforms make of a source and of (the beginning of) an output; no tokens
        where they drop the pair."""
        pair: dict[str, Any] = {"src": source.split(), "tgt": target.split()}
        pair |= {"src_original": pair["src"], "tgt_original": pair["tgt"]}
        done = self.pipe.apply(pair, is_train=False, corpus_name="translate")
        return ([], []) if done is None else (done["src"], done["tgt"])

    def encode(self, words: Sequence[str], index: int = 0) -> EncodedSource:
        """A source of these tokens, which the transforms have made, as example `index`."""
        copied = copying(words, self.vocabularies)
        ids = self.vocabularies.source.encode(copied.hide(words))
        return EncodedSource(tuple(words), copied, Example(ids, None, index))

    def postprocess(self, tokens: Sequence[str]) -> str:
        """Tokens of an output as text: the transforms undone."""
        done: str = self.pipe.apply_reverse(" ".join(tokens))
        return done
