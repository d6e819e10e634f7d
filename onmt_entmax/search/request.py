"""What a beam search is asked for: a batch, and what the outputs of its sentences must satisfy."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from onmt_entmax.errors import counted
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.constraints import check_tokens, checked_prefixes
from onmt_entmax.search.stepper import Stepper

Automata = Sequence[Automaton | None]
"""For each sentence what its output must satisfy, if anything."""

Banned = Sequence[Collection[int]]
"""For each sentence token ids that its output may not have."""


class SentenceRequest(NamedTuple):
    """What the output of one sentence must satisfy; fields as in `Sentence`."""

    forced: tuple[int, ...]
    automaton: Automaton | None
    banned: frozenset[int]


class Request(NamedTuple):
    """A batch, and what is asked of the outputs of its sentences."""

    batch: Any
    """What the stepper's `start` takes; its `len` is the number of sentences."""
    prefixes: Sequence[Sequence[int]] | None = None
    """For each sentence the token ids that its output must start with."""
    automata: Automata | None = None
    banned: Banned | None = None
    """Besides the tokens of `SearchConfig.constraints`."""

    def of_sentences(self, stepper: Stepper, max_length: int) -> list[SentenceRequest]:
        """Return what is asked of each sentence, in the order of the batch.

        Args:
            stepper: the model, which has the tokens.
            max_length: longest output, without its end symbol.

        Raises:
            ValueError: if there is not one item for each sentence, or a token or prefix is not
                valid.
        """
        count = len(self.batch)
        prefixes = checked_prefixes(self.prefixes, count, stepper, max_length)
        for name, items in (("automata", self.automata), ("banned", self.banned)):
            if items is not None and len(items) != count:
                raise ValueError(f"{name} has {len(items)} for {counted(count, 'sentence')}")
        automata = self.automata or [None] * count
        banned = [frozenset(tokens) for tokens in self.banned or [()] * count]
        check_tokens(frozenset().union(*banned), stepper.vocabulary_size)
        return [
            SentenceRequest(tuple(prefix), automaton, tokens)
            for prefix, automaton, tokens in zip(prefixes, automata, banned, strict=True)
        ]
