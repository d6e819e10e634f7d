"""From text to the tokens that a model reads, and from its output to text."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from torch import Tensor

from onmt_entmax.data.batch import Example
from onmt_entmax.data.transforms import Pipe
from onmt_entmax.data.vocabulary import STRUCTURAL, TARGET_SPECIALS, Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.opennmt import DefaultTokens, Transform
from onmt_entmax.strings.copying import NO_COPIES, PLACEHOLDERS, Copies
from onmt_entmax.strings.task import LANGUAGE, Codec, is_language


@dataclass(frozen=True)
class EncodedSource:
    """A source as a model reads it.

    Attributes:
        words: its tokens after the transforms; empty for a blank line or one that they drop.
        example: its ids.
        unknown: its tokens that are not in the vocabulary or are symbols of the model's own, which
            the model reads as `<unk>`.
        unseen: its tokens that training saw, but not in its language; see `Vocabulary.unseen`.
        copies: the placeholders that the model reads in the place of some of its tokens.
        banned: ids of target tokens that no output for this source may have, because of these or
            of its language.
    """

    words: tuple[str, ...]
    example: Example
    unknown: tuple[str, ...]
    unseen: tuple[tuple[str, str], ...] = ()
    copies: Copies = NO_COPIES
    banned: tuple[int, ...] = ()


class LanguageSymbols:
    """The symbols that outputs of each language may have.

    Args:
        recorded: target tokens, by the token of the language.
    """

    def __init__(self, recorded: Mapping[str, frozenset[str]]) -> None:
        self._recorded = recorded
        self._told: set[str] = set()

    def of(self, language: str) -> frozenset[str] | None:
        """Return those of a language; None if they are not recorded, of which users are warned."""
        found = self._recorded.get(language)
        if found is None and is_language(language) and language not in self._told:
            self._told.add(language)
            warnings.warn(
                f"target_symbols: the model does not record the target symbols of "
                f"{language.removeprefix(LANGUAGE)}: its outputs may have any",
                stacklevel=2,
            )
        return found


@dataclass(frozen=True)
class Reader:
    """Preprocessing of a model.

    Attributes:
        vocabularies: of the model.
        pipe: OpenNMT-py's transforms; without any, tokens are separated by spaces.
        codec: between the tokens of texts and those of the network.
        symbols: that outputs may have, besides those of their source; None: all.
    """

    vocabularies: Vocabularies
    pipe: Pipe = field(default_factory=lambda: Pipe.build_from([]))
    codec: Codec = field(default_factory=Codec)
    symbols: LanguageSymbols | None = field(default=None, repr=False)

    @property
    def backwards(self) -> bool:
        """Whether the model writes from right to left; texts read from left to right."""
        return self.codec.task.right_to_left

    @property
    def merges(self) -> bool:
        """Whether several outputs may become the same text when the transforms are undone."""
        return any(
            type(transform).apply_reverse is not Transform.apply_reverse
            for transform in self.pipe.transforms
        )

    def preprocess(self, source: str, target: str = "") -> tuple[list[str], list[str]]:
        """Return the tokens of a source and of a target or target prefix, after the transforms.

        Those of the source are of the text; those of the target are the network's. Both are empty
        if the transforms drop the pair.
        """
        pair = self.pipe.tokens(source, target, "translate")
        return ([], []) if pair is None else (pair[0], self.target_of(*pair))

    def encode(self, words: Sequence[str], index: int = 0) -> EncodedSource:
        """Encode the tokens of a source, after the transforms, as example `index`."""
        vocabulary, symbols = self.vocabularies.source, self._structural
        read, _, copies = self.codec.encode(words)
        if not symbols.isdisjoint(read):
            read = [DefaultTokens.UNK if word in symbols else word for word in read]
        ids = vocabulary.encode(read)
        unknown: tuple[str, ...] = ()
        if vocabulary.unk in ids:  # rare, and faster than a look at each token
            unknown = tuple(w for w, i in zip(words, ids, strict=True) if i == vocabulary.unk)
            unknown = tuple(word for word in unknown if word != DefaultTokens.UNK)
        unseen = tuple(
            (language, copies.symbols.get(token, token))
            for language, token in vocabulary.unseen(read)
        )
        banned = self._banned(words, copies)
        return EncodedSource(
            tuple(words), Example(ids, None, index), unknown, unseen, copies, banned
        )

    def _banned(self, words: Sequence[str], copies: Copies) -> tuple[int, ...]:
        """Return the ids of target tokens that no output for a source may have."""
        target, banned = self.vocabularies.target, list[int]()
        if self.codec.task.copies:
            banned = target.encode(copies.excluded(target))
        if self.symbols is not None and words:
            foreign = self._foreign(self.symbols, words[0])
            own = {foreign[word] for word in words if word in foreign}
            banned += (each for each in foreign.values() if each not in own)
        return tuple(banned)

    def restricts(self, words: Sequence[str]) -> bool:
        """Return whether `symbols` excludes any token from the outputs for a source."""
        return self.symbols is not None and any(self._foreign(self.symbols, words[0]))

    def _foreign(self, symbols: LanguageSymbols, language: str) -> dict[str, int]:
        """Return the target tokens, with their ids, that outputs of a language may not have."""
        if (known := self._foreign_tokens.get(language)) is not None:
            return known
        own, tokens = symbols.of(language), self.vocabularies.target.tokens
        if own is None:
            return {}
        allowed = {*own, *TARGET_SPECIALS, *PLACEHOLDERS}
        found = {token: i for i, token in enumerate(tokens) if token not in allowed}
        self._foreign_tokens[language] = found
        return found

    @cached_property
    def _foreign_tokens(self) -> dict[str, dict[str, int]]:
        return {}

    @cached_property
    def _structural(self) -> frozenset[str]:
        """Symbols of the model's own that a source may not mean.

        A source vocabulary that is not shared needs only padding: others come from training data.
        """
        source, target = self.vocabularies
        return STRUCTURAL if source == target else STRUCTURAL & {DefaultTokens.PAD}

    def postprocess(self, tokens: Sequence[str], copies: Copies = NO_COPIES) -> str:
        """Return an output of the network as text, with the transforms undone.

        Args:
            tokens: of the network.
            copies: of the source.
        """
        return self.pipe.apply_reverse(" ".join(self.codec.decode(tokens, copies)))

    def target_of(self, source: Sequence[str], target: Sequence[str]) -> list[str]:
        """Return the network's tokens of a target; source and target are tokens of texts."""
        return self.codec.encode(source, target)[1]


def replace_unknown(
    tokens: Sequence[str],
    source: Sequence[str],
    attention: Tensor,
    phrase_table: Mapping[str, str],
) -> list[str]:
    """Return an output whose unknown tokens are the source words with the most attention.

    As OpenNMT-py's `replace_unk` and `phrase_table`, after Jean et al. (2015), "On Using Very Large
    Target Vocabulary", section 4.1.3, with attention instead of an alignment.

    Args:
        tokens: the output.
        source: tokens of its source.
        attention: weights, at least ``(len(tokens), len(source))``.
        phrase_table: target words for some source words; other source words are copied.
    """
    replaced = list(tokens)
    for step, token in enumerate(tokens):
        if token == DefaultTokens.UNK:
            word = source[int(attention[step, : len(source)].argmax())]
            replaced[step] = phrase_table.get(word, word)
    return replaced


def read_phrase_table(path: Path) -> dict[str, str]:
    """Read lines of `source word|||target word`; the first line for a source word counts.

    Raises:
        UserError: the file cannot be read, or a line has another form.
    """
    table: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        # Further columns, such as probabilities, are ignored.
        source, target = (part.strip() for part in f"{line}|||".split("|||")[:2])
        if not source or not target:
            raise UserError(f"{path}: line {number} is not `source|||target`")
        table.setdefault(source, target)
    return table
