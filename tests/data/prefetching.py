"""Streams that other processes prefetch, and these processes.

As a script, a process that takes a prefetched batch, and then waits for a signal or ends:

    python -m tests.data.prefetching FOLDER fork|spawn wait|end
"""

import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data import prefetch
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, stream


def transformed_corpora(folder: Path, **changes: object) -> DataConfig:
    """Return two corpora with a random transform and a filter: over three buckets per epoch."""
    options = {**TOKENDROP, "src_seq_length": 4, "tgt_seq_length": 4}
    transforms = ("filtertoolong", "tokendrop")
    small = numbered_corpus(folder, "small", 10, weight=2, transforms=transforms)
    large = numbered_corpus(folder, "large", 40, transforms=transforms)
    return data_config(small, large, bucket_size=35, transform_options=options, **changes)


def children_of(pid: int) -> list[int]:
    """Return the live child processes of a process; skip the test where they cannot be found."""
    if not Path("/proc/thread-self/children").exists():  # an option of the kernel
        pytest.skip("finds processes through /proc")
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            children += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in children if is_alive(child)]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended may still be listed, as a zombie."""
    with suppress(OSError):  # it is not listed
        # `PID (NAME) STATE ...`, where the name may have spaces and brackets.
        _, _, after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return after_name.split()[0] != "Z"
    return False


def _prefetch(folder: Path, start_method: str, then: str) -> None:
    """Prefetch batches with two workers; print `ready` after the first one.

    Args:
        folder: of the corpora, which are written.
        start_method: by which Python starts the workers.
        then: "wait" for a signal, or "end" while the workers go on.
    """
    prefetch.START_METHOD = start_method
    batches = iter(stream(transformed_corpora(folder), workers=2))
    next(batches)
    print("ready", flush=True)
    if then == "wait":
        time.sleep(60)  # at most, if the test was killed


if __name__ == "__main__":
    folder, start_method, then = sys.argv[1:]
    _prefetch(Path(folder), start_method, then)
