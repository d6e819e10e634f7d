"""Turn text into the ids that a model reads, and the model's output into text.

A source takes three steps; an output takes the same steps back:

    text      --preprocess-->   tokens of the text       OpenNMT-py's transforms
              --encode-->       tokens of the network    `Codec`: placeholders of copied symbols
                                ids                      the vocabulary
    ids       --decode-->       tokens of the network    `Vocabulary.decode`
              --postprocess-->  text                     `Codec`, then the transforms undone
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from onmt_entmax.data.batch import Example
from onmt_entmax.data.language_symbols import ForeignTokens, LanguageSymbols
from onmt_entmax.data.token_names import UnseenToken
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabularies
from onmt_entmax.opennmt import DefaultTokens, Transform
from onmt_entmax.strings.codec import Codec
from onmt_entmax.strings.copying import NO_COPIES, Copies


class TransformedPair(NamedTuple):
    """A source and a target, or a prefix of one, after the transforms.

    Attributes:
        words: tokens of the source's text, which `Reader.encode` takes.
        target: the network's tokens of the target.
    """

    words: list[str]
    target: list[str]


@dataclass(frozen=True)
class EncodedSource:
    """A source as a model reads it.

    Attributes:
        words: the source's tokens after the transforms; empty for a blank line, and for a line that
            the transforms drop.
        example: the ids that the model reads.
        unknown: tokens that the model reads as `<unk>`: the vocabulary lacks them, or they name a
            symbol of the model's own, such as `<s>`.
        unseen: tokens that training saw in other languages only; a copied symbol stands for its
            placeholder.
        copies: placeholders that the model reads for copied symbols.
        banned: ids of target tokens that no output for this source may have: placeholders that
            stand for none of its symbols, and symbols that its language does not have.
    """

    words: tuple[str, ...]
    example: Example
    unknown: tuple[str, ...]
    unseen: tuple[UnseenToken, ...] = ()
    copies: Copies = NO_COPIES
    banned: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reader:
    """Turns texts into what a model reads, and its outputs into texts.

    Attributes:
        vocabularies: the vocabularies of the model.
        pipe: OpenNMT-py's transforms; without any, tokens are separated by spaces.
        codec: turns the tokens of texts into those of the network, and back.
        symbols: the symbols that outputs of each language may have, besides the symbols of their
            source. None: outputs may have all symbols.
    """

    vocabularies: Vocabularies
    pipe: Pipe = field(default_factory=lambda: Pipe.build_from([]))
    codec: Codec = field(default_factory=Codec)
    symbols: LanguageSymbols | None = field(default=None, repr=False)

    @property
    def right_to_left(self) -> bool:
        """Whether the model writes the last symbol first. Texts are in reading order."""
        return self.codec.task.right_to_left

    @property
    def can_merge_outputs(self) -> bool:
        """Whether several outputs may become the same text when the transforms are undone."""
        return any(
            type(transform).apply_reverse is not Transform.apply_reverse
            for transform in self.pipe.transforms
        )

    def preprocess(self, source: str, target: str = "") -> TransformedPair:
        """Apply the transforms to a source, and to a target or a prefix of one.

        Args:
            source: the text of the source.
            target: the text of the target or prefix, if there is one.

        Returns:
            The tokens of both; no tokens if the transforms drop the pair.
        """
        pair = self.pipe.tokens(source, target, corpus="translate")
        if pair is None:
            return TransformedPair([], [])
        words, target_words = pair
        return TransformedPair(words, self.target_of(words, target_words))

    def encode(self, words: Sequence[str], index: int = 0) -> EncodedSource:
        """Return a source as the model reads it.

        Args:
            words: tokens of the source's text, after the transforms.
            index: becomes `Example.index`.
        """
        vocabulary = self.vocabularies.source
        structural = self._structural
        read, _, copies = self.codec.encode(words)
        if not structural.isdisjoint(read):
            read = [DefaultTokens.UNK if word in structural else word for word in read]
        ids = vocabulary.encode(read)
        return EncodedSource(
            words=tuple(words),
            example=Example(ids, None, index),
            unknown=self._unknown(words, ids),
            unseen=tuple(
                (language, copies.symbols.get(token, token))
                for language, token in vocabulary.unseen(read)
            ),
            copies=copies,
            banned=self._banned(words, copies),
        )

    def _unknown(self, words: Sequence[str], ids: Sequence[int]) -> tuple[str, ...]:
        """Return the words whose id is that of `<unk>`, except `<unk>` itself."""
        unk = self.vocabularies.source.unk
        if unk not in ids:  # true for most sources, and faster to find out than by the loop below
            return ()
        return tuple(
            word
            for word, token_id in zip(words, ids, strict=True)
            if token_id == unk and word != DefaultTokens.UNK
        )

    def _banned(self, words: Sequence[str], copies: Copies) -> tuple[int, ...]:
        """Return the ids of target tokens that no output for a source may have.

        Args:
            words: tokens of the source's text.
            copies: the placeholders of its copied symbols; all other placeholders are banned.
        """
        target = self.vocabularies.target
        banned = list[int]()
        if self.codec.task.copies:
            banned = target.encode(copies.excluded(target))
        if self._foreign is not None and words:
            in_source = set(words)
            banned += (
                token_id
                for token, token_id in self._foreign.of(words[0]).items()
                if token not in in_source
            )
        return tuple(banned)

    def restricts_outputs(self, words: Sequence[str]) -> bool:
        """Return whether `symbols` excludes any token from the outputs for a source."""
        return self._foreign is not None and len(self._foreign.of(words[0])) > 0

    @cached_property
    def _foreign(self) -> ForeignTokens | None:
        """The tokens that `symbols` excludes; None if it excludes none."""
        if self.symbols is None:
            return None
        return ForeignTokens(self.symbols, self.vocabularies.target)

    @cached_property
    def _structural(self) -> frozenset[str]:
        """The model's own symbols, which it reads as `<unk>` if a text contains them.

        In a shared vocabulary, these are padding, start and end symbol. A source vocabulary of its
        own needs only padding: if it has `<s>` or `</s>`, this is a word of the training data.
        """
        source, target = self.vocabularies
        return STRUCTURAL if source == target else STRUCTURAL & {DefaultTokens.PAD}

    def postprocess(self, tokens: Sequence[str], copies: Copies = NO_COPIES) -> str:
        """Return an output of the network as text, with the transforms undone.

        Args:
            tokens: the output in the network's tokens.
            copies: the copied symbols of the source.
        """
        return self.pipe.apply_reverse(" ".join(self.codec.decode(tokens, copies)))

    def target_of(self, source: Sequence[str], target: Sequence[str]) -> list[str]:
        """Return the network's tokens of a target.

        Args:
            source: tokens of the source's text.
            target: tokens of the target's text.
        """
        _, network_target, _ = self.codec.encode(source, target)
        return network_target
