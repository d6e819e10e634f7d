"""Requests of a search: a batch, and constraints on the outputs of its sentences."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from onmt_entmax.errors import counted
from onmt_entmax.search.arrays import Ints
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.stepper import Stepper
from onmt_entmax.search.token_checks import check_tokens, checked_prefixes

Automata = Sequence[Automaton | None]
"""For each sentence the automaton that accepts the outputs it may have; None: any output."""

Banned = Sequence[Collection[int]]
"""For each sentence token ids that its output may not have, besides those of the search."""


class SentenceRequest(NamedTuple):
    """The constraints on the output of one sentence."""

    forced: tuple[int, ...]
    """Token ids that it must start with."""
    automaton: Automaton | None
    """Accepts the outputs that the sentence may have; None: any output."""
    excluded: Ints
    """`(tokens,)` sorted token ids that the output may not have: those that the request bans, the
    configuration's and the stepper's."""
    source_length: int
    """Length of the source in tokens; 0 if no length reward reads it."""


class Request(NamedTuple):
    """A batch, and constraints on the outputs of its sentences."""

    batch: Any
    """What the stepper's `start` takes; its `len` is the number of sentences."""
    prefixes: Sequence[Sequence[int]] | None = None
    """For each sentence the token ids that its output must start with."""
    automata: Automata | None = None
    """For each sentence the automaton that accepts the outputs it may have; None: any output."""
    banned: Banned | None = None
    """For each sentence token ids that its output may not have, besides those of
    `SearchConfig.constraints`."""

    def of_sentences(self, stepper: Stepper, config: SearchConfig) -> list[SentenceRequest]:
        """Return the request of each sentence, in the order of the batch.

        Args:
            stepper: the model. It tells the size of the vocabulary, the tokens that it excludes
                and, for a length reward, the lengths of the sources.
            config: the options of the search. They have the tokens that no output may have, and the
                length limit.

        Raises:
            ValueError: if there is not one prefix, automaton or ban for each sentence, or a token
                or prefix is not valid.
        """
        count = len(self.batch)
        prefixes = checked_prefixes(self.prefixes, count, stepper, config.max_length)
        for name, items in (("automata", self.automata), ("banned", self.banned)):
            if items is not None and len(items) != count:
                raise ValueError(f"{name} has {len(items)} for {counted(count, 'sentence')}")
        automata = self.automata or [None] * count
        banned = [frozenset(tokens) for tokens in self.banned or [()] * count]
        check_tokens(frozenset().union(*banned), stepper.vocabulary_size)
        always = {*stepper.excluded, *config.constraints.banned}
        lengths = [0] * count
        if config.penalties.length_reward:
            lengths = [*stepper.source_lengths(self.batch)]
        return [
            SentenceRequest(
                forced=tuple(prefix),
                automaton=automaton,
                excluded=np.array(sorted(always | tokens), dtype=np.int64),
                source_length=length,
            )
            for prefix, automaton, tokens, length in zip(
                prefixes, automata, banned, lengths, strict=True
            )
        ]
