"""Beam search with certificates, for one batch or a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onmt_entmax.search.beam_steps import BeamSearch
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.request import Automata, Banned, Request
from onmt_entmax.search.stepper import Stepper


def beam_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
    automata: Automata | None = None,
    banned: Banned | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        config: the options of the search.
        prefixes: for each sentence the token ids that its output must start with.
        automata: for each sentence the automaton that its output must satisfy, or None.
        banned: for each sentence token ids that its output may not have after its prefix, besides
            those of `config.constraints`.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        SearchError: if the model gives no token a positive probability, or a coverage penalty is
            set and the stepper returns no attention.
        ValueError: if a token, a prefix or an automaton is not valid.
    """
    request = Request(batch, prefixes, automata, banned)
    results = dict(stream_search(stepper, [request], config))
    return [results[sentence] for sentence in sorted(results)]


def stream_search(
    stepper: Stepper, requests: Iterable[Request], config: SearchConfig, rows: int = 128
) -> Iterator[tuple[int, SearchResult]]:
    """Search a stream of batches, and refill the decoder's batch as sentences leave it.

    Memory: at most `rows` sentences and those of one more batch, each with up to `beam_size` live
    prefixes. Batches are taken from `requests` when they are needed, and results are not kept.

    Args:
        stepper: the model. If its rows cannot have different lengths (a Transformer), a batch
            starts when the one before is done.
        requests: batches, with the constraints on their outputs.
        config: the options of the search.
        rows: a new batch starts when at most this many live prefixes are left.

    Yields:
        The number of a sentence and its result, as soon as it is done. Sentences are numbered from
        0 in the order of `requests`, and within a batch in its order.
    """
    search = BeamSearch(stepper, config)
    supply = iter(requests)
    exhausted = False
    while len(search) or not exhausted:
        while not exhausted and search.has_room(rows):
            request = next(supply, None)
            if request is None:
                exhausted = True
            else:
                search.admit(request)
        if len(search):
            yield from search.advance()
