"""Characters that training never saw, copied from the source instead of becoming unknown.

The distinct unknown characters of a sentence get numbered placeholders, `<copy1>` for the first
of them, on both sides: the model says where a character goes without a name for it (the copyable
model of Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation",
section 3.1, for characters). The transform `copychars` teaches this, by hiding known characters
of some training pairs. A model whose vocabularies have placeholders uses them always: when it
trains, validates, translates and scores.

Within a sentence this renames symbols one to one, so what is proven of strings with placeholders
is proven of the strings that are read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.opennmt import ArgumentParser, Transform, register_transform
from onmt_entmax.text.vocabulary import COPY_SYMBOL, Vocabularies


@dataclass(frozen=True)
class Copying:
    """What the placeholders of one sentence stand for."""

    symbols: Mapping[str, str]
    """The placeholder of each character that has one."""

    def hide(self, tokens: Iterable[str]) -> list[str]:
        """The tokens with placeholders, as the model reads and writes them."""
        return [self.symbols.get(token, token) for token in tokens]

    def show(self, tokens: Iterable[str]) -> list[str]:
        """The tokens with characters; a placeholder that stands for nothing stays."""
        characters = {symbol: character for character, symbol in self.symbols.items()}
        return [characters.get(token, token) for token in tokens]


def copying(source: Sequence[str], vocabularies: Vocabularies) -> Copying:
    """Placeholders for the unknown characters of a source, in the order they come.

    A character is a token of one code point; an unknown tag or word stays unknown. So does a
    character that one vocabulary has (else two outputs would be the same string), and so do
    characters beyond the last placeholder.
    """
    free = [s for s in vocabularies.target.copy_symbols if s in vocabularies.source]
    if not free:
        return Copying({})
    unknown = dict.fromkeys(
        token
        for token in source
        if len(token) == 1 and not any(token in vocabulary for vocabulary in vocabularies)
    )
    free = [symbol for symbol in free if symbol not in source]  # the transform may have used some
    return Copying(dict(zip(unknown, free, strict=False)))


@register_transform("copychars")
class CopyCharacters(Transform):
    """Hides some characters of some training pairs, so that the model learns to copy.

    A character may be hidden if it occurs as often in the target as in the source: it can have
    been copied. Rarer ones are likelier: in proportion to their place in the vocabulary, which is
    ordered by frequency, and frequency falls about as 1 / place. Half of the chosen pairs hide one
    character, a quarter two, and so on.
    """

    _places: Mapping[str, int] = {}

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """The options of the transform."""
        add = parser.add_argument_group("Transform/Copychars").add_argument
        add("-copy_symbols", type=int, default=4, help="How many placeholders there are.")
        add("-copy_rate", type=float, default=0.1, help="Part of the training pairs to change.")

    @classmethod
    def get_specials(cls, opts: Any) -> tuple[set[str], set[str]]:
        """The placeholders, for both sides."""
        symbols = {COPY_SYMBOL.format(i) for i in range(1, opts.copy_symbols + 1)}
        return symbols, set(symbols)

    def warm_up(self, vocabs: Any = None) -> None:
        """Learn which characters are known; without vocabularies nothing is hidden."""
        super().warm_up(vocabs)
        if vocabs is not None:
            places = {token: place for place, token in enumerate(vocabs["src"].itos, 1)}
            known = places.keys() & vocabs["tgt"].itos
            self._places = {token: places[token] for token in known if len(token) == 1}

    def apply(
        self, example: dict[str, Any], is_train: bool = False, stats: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """The pair, or while training now and then one with characters hidden."""
        if not is_train or not self._places or random.random() >= self.opts.copy_rate:
            return example
        counts = Counter(example["tgt"])
        candidates = [
            token
            for token, count in Counter(example["src"]).items()
            if token in self._places and counts[token] == count
        ]
        number = 1
        while number < self.opts.copy_symbols and random.random() < 0.5:
            number += 1
        # Without replacement, by weight (Efraimidis and Spirakis 2006).
        keys = {token: random.random() ** (1 / self._places[token]) for token in candidates}
        drawn = set(sorted(candidates, key=keys.__getitem__)[-number:])
        ordered = [token for token in candidates if token in drawn]
        hidden = Copying({token: COPY_SYMBOL.format(i) for i, token in enumerate(ordered, 1)})
        return example | {"src": hidden.hide(example["src"]), "tgt": hidden.hide(example["tgt"])}
