"""From one line of text to what a model reads: transforms, placeholders, ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from onmt_entmax.data.batch import Example
from onmt_entmax.data.transforms import Copying, copying
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import DefaultTokens, Transform, TransformPipe


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


# Words for the unknown tokens of an output: those of the source that the model looked at.
#
# After Jean et al. (2015), "On Using Very Large Target Vocabulary", section 4.1.3, with the attention
# in the place of an alignment; as OpenNMT-py's `replace_unk` and `phrase_table`.


@dataclass(frozen=True)
class UnknownWords:
    """How unknown tokens are replaced.

    Attributes:
        phrase_table: a target word for some source words; any other word is copied.
    """

    phrase_table: Mapping[str, str]

    def replace(self, tokens: Sequence[str], source: Sequence[str], attention: Tensor) -> list[str]:
        """The tokens with words in the place of unknown ones.

        Args:
            tokens: an output.
            source: its source.
            attention: ``(at least len(tokens), at least len(source))`` weights of the steps.
        """
        replaced = list(tokens)
        for step, token in enumerate(tokens):
            if token == DefaultTokens.UNK:
                word = source[int(attention[step, : len(source)].argmax())]
                replaced[step] = self.phrase_table.get(word, word)
        return replaced


def read_phrase_table(path: Path) -> dict[str, str]:
    """Lines of `source word|||target word`; of one source word the first line counts.

    Raises:
        UserError: it cannot be read, or a line is not of this form.
    """
    table: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                source, bars, rest = line.partition("|||")
                # A third column, of probabilities say, is left unread.
                target = rest.split("|||")[0].strip()
                if not bars or not source.strip() or not target:
                    raise UserError(f"{path}: line {number} is not `source|||target`")
                table.setdefault(source.strip(), target)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    return table
