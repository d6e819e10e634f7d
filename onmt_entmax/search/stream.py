"""Search over an endless supply of sentences, with the batch refilled as sentences leave it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onmt_entmax.search.beam import BeamSearch
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.stepper import Stepper

Work = tuple[Any, Sequence[Sequence[int]] | None]
"""A batch, and the prefixes that its sentences' strings must start with, or None."""


def stream_search(
    stepper: Stepper, work: Iterable[Work], config: SearchConfig, rows: int = 128
) -> Iterator[tuple[int, SearchResult]]:
    """Search sentences as they come.

    Memory: at most `rows` prefixes and those of one more batch are in flight, each sentence with at
    most `beam_size` of them; results are not kept. Batches are asked for when they are needed.

    Args:
        stepper: the model. Where its rows cannot have different lengths (a Transformer), a batch
            starts when the one before is done.
        work: batches with their prefixes.
        config: how to search.
        rows: a new batch is started when no more prefixes than this are in flight.

    Yields:
        The number of a sentence and its result, as soon as it is done. Sentences are numbered in
        the order of `work` and within a batch in its order, from 0.
    """
    search = BeamSearch(stepper, config)
    supply = iter(work)
    exhausted = False
    while len(search) or not exhausted:
        while not exhausted and (
            not len(search) or (stepper.can_join and search.rows_in_flight <= rows)
        ):
            following = next(supply, None)
            if following is None:
                exhausted = True
            else:
                search.admit(*following)
        if len(search):
            yield from search.advance()
