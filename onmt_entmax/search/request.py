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
"""For each sentence the automaton that its output must satisfy; None: any output."""

Banned = Sequence[Collection[int]]
"""For each sentence token ids that its output may not have after its forced prefix, besides those
of `SearchConfig.constraints`."""


class SentenceRequest(NamedTuple):
    """The constraints on the output of one sentence, and the length of its source."""

    forced: tuple[int, ...]
    """Token ids that the output must start with."""
    automaton: Automaton | None
    """The automaton that it must satisfy; None: any output."""
    excluded: Ints
    """`(tokens,)` sorted token ids that it may not have after `forced`: those that the request bans
    for this sentence, those of `SearchConfig.constraints`, and those of `Stepper.excluded`."""
    source_length: int
    """Length of the source in tokens; 0 if no length reward reads it."""


class Request(NamedTuple):
    """A batch, and constraints on the outputs of its sentences."""

    batch: Any
    """What the stepper's `start` takes; its `len` is the number of sentences."""
    prefixes: Sequence[Sequence[int]] | None = None
    """For each sentence the token ids that its output must start with."""
    automata: Automata | None = None
    """One for each sentence, or None for any outputs."""
    banned: Banned | None = None
    """One collection for each sentence, or None."""

    def of_sentences(self, stepper: Stepper, config: SearchConfig) -> list[SentenceRequest]:
        """Return the request of each sentence, in the order of the batch.

        Args:
            stepper: the model, with the size of its vocabulary, the tokens that it excludes and,
                for a length reward, the lengths of the sources.
            config: the options of the search, with the tokens that no output may have, and the
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
