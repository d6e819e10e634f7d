"""Search or sample the outputs of lines, in batches of similar length that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onmt_entmax.data.batch import Batch, batches_by_length, make_batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.line_memory import LineMemory
from onmt_entmax.line_reader import Line
from onmt_entmax.search import (
    Request,
    Sample,
    Sampling,
    SearchConfig,
    SearchResult,
    SearchTask,
    Stepper,
    Verification,
    exact_search,
    is_settled,
    sample,
    stream_search,
    verify,
)

# Live prefixes of one batch: the rows that a step of the decoder computes together.
_ROWS = {"cpu": 1280, "cuda": 16_384}
# A new batch joins the search when at most so many live prefixes are left for each sentence of a
# batch. It takes the places of sentences that have ended, before the decoder has only few rows.
_REFILL_PREFIXES = 4


@dataclass(frozen=True)
class LineSearch:
    """Searches lines with one model or a token-level ensemble.

    Attributes:
        stepper: the stepper of the models.
        verifier: the stepper in double precision; None if no certificates are to be verified.
        task: what to search for, and how.
        config: the configuration of the search, with token ids.
        vocabularies: the vocabularies of the models.
        memory: limits long lines to the memory of the device.
    """

    stepper: Stepper
    verifier: Stepper | None
    task: SearchTask
    config: SearchConfig
    vocabularies: Vocabularies
    memory: LineMemory

    def results(
        self, lines: Sequence[Line], batch_size: int
    ) -> Iterator[tuple[Line, SearchResult]]:
        """Search lines; yield each with its result, in the order in which they are found.

        Args:
            lines: any number of them.
            batch_size: most sentences that are searched together.

        Raises:
            TooLargeError: if a line is too long for the memory or a Transformer.
        """
        if self.task.method == "enumerate":
            for line in lines:
                with self.memory.limited([line.source.example], 1):
                    result = self._exact(line)
                yield line, result
            return
        sentences = self._sentences(batch_size, self.config.beam_size)
        longest_first = list(self._batches(lines, sentences))[::-1]
        order = [line for _, group in longest_first for line in group]
        requests = (_request(batch, group) for batch, group in longest_first)
        rows = _REFILL_PREFIXES * sentences
        with self.memory.limited([line.source.example for line in lines], sentences):
            for number, result in stream_search(self.stepper, requests, self.config, rows):
                line = order[number]
                needs_more = not is_settled(result, self.config.n_best)
                if self.task.method == "exact" and needs_more:
                    result = self._exact(line, beam_result=result)
                yield line, result

    def samples(
        self, sampling: Sampling, lines: Sequence[Line], batch_size: int
    ) -> Iterator[tuple[Line, tuple[Sample, ...]]]:
        """Draw outputs; yield each line with those that were drawn.

        Args:
            sampling: how to draw.
            lines: any number of them.
            batch_size: most sentences that are computed together.

        Raises:
            TooLargeError: if a line is too long for the memory or a Transformer.
        """
        sentences = self._sentences(batch_size, self.config.n_best)
        for batch, group in self._batches(lines, sentences):
            with self.memory.limited([line.source.example for line in group], sentences):
                drawn = sample(
                    self.stepper,
                    _request(batch, group),
                    sampling,
                    count=self.config.n_best,
                    max_length=self.config.max_length,
                    numbers=batch.indices,
                )
            yield from zip(group, drawn, strict=True)

    def verification(self, line: Line, result: SearchResult) -> Verification | None:
        """Verify a result; return None if nothing was proven or the task does not ask for it."""
        if self.verifier is None or result.certificate.level == "none":
            return None
        request = self._request_of_one(line)
        return verify(self.verifier, request, result, self.config, budget=self.task.budget)

    def _exact(self, line: Line, beam_result: SearchResult | None = None) -> SearchResult:
        """Search one line exactly, after a beam search with this result if there was one."""
        return exact_search(
            self.stepper,
            self._request_of_one(line),
            self.config,
            budget=self.task.budget,
            mass=self.task.mass,
            beam_result=beam_result,
        )

    def _request_of_one(self, line: Line) -> Request:
        """Return the request of one line alone."""
        return _request(make_batch([line.source.example], self.vocabularies), [line])

    def _sentences(self, batch_size: int, width: int) -> int:
        """Return the number of sentences in a batch; each has up to `width` live prefixes."""
        return min(batch_size, max(1, _ROWS[self.memory.device.type] // width))

    def _batches(self, lines: Sequence[Line], sentences: int) -> Iterator[tuple[Batch, list[Line]]]:
        """Yield batches of lines of similar length, short ones first, each with its lines."""
        by_number = {line.source.example.index: line for line in lines}
        examples = [line.source.example for line in lines]
        for batch in batches_by_length(examples, sentences, self.vocabularies):
            yield batch, [by_number[number] for number in batch.indices]


def _request(batch: Batch, lines: Sequence[Line]) -> Request:
    """Return a batch of lines with what their outputs must satisfy."""
    return Request(
        batch,
        prefixes=[line.prefix for line in lines],
        automata=[line.automaton for line in lines],
        banned=[line.source.banned for line in lines],
    )
