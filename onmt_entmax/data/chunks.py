"""Read a corpus in chunks of lines, each with random numbers of its own."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from onmt_entmax.config import CorpusConfig, DataConfig
from onmt_entmax.data.corpus import Line, build_pipe, corpus_lines
from onmt_entmax.data.garbage_collection import without_collections
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.transforms import Pipe

LINES = 1 << 14  # lines of a chunk, which are in memory together
T = TypeVar("T")


def read_chunks(
    corpus: CorpusConfig, data: DataConfig, read: Callable[[Line, Pipe], T]
) -> Iterator[list[T]]:
    """Yield what a function returns for the lines of a corpus, a chunk of lines at a time.

    The random numbers of a chunk's transforms depend on the seed, the corpus and the chunk alone,
    so that every reading of a corpus gives the same pairs.

    Args:
        corpus: the corpus to read.
        data: seed, and options of transforms.
        read: applies the transforms of the corpus to a line.
    """
    pipe, lines = build_pipe(corpus, data), corpus_lines(corpus)

    def read_all(chunk: Sequence[Line]) -> list[T]:
        with without_collections():
            return [read(line, pipe) for line in chunk]

    for number in itertools.count():
        chunk = list(itertools.islice(lines, LINES))
        if not chunk:
            return
        yield with_seed(f"{data.seed}/{corpus.name}/{number}", partial(read_all, chunk))
