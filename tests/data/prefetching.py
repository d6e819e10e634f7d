"""A process that takes a prefetched batch, prints `ready`, and then waits for a signal or ends:

    python -m tests.data.prefetching FOLDER fork|spawn wait|end

It writes its corpora to the folder; Python starts its two workers by `fork` or by `spawn`.
"""

import sys
import time
from pathlib import Path

from onmt_entmax.data import prefetch
from tests.data.corpora import stream, transformed_corpora

WAIT = 60  # seconds; the process ends then even if no signal comes, because its test was killed


def main(folder: str, start_method: str, then: str) -> None:
    """Prefetch batches; see the head of this file."""
    prefetch.START_METHOD = start_method
    batches = iter(stream(transformed_corpora(Path(folder)), workers=2))
    next(batches)
    print("ready", flush=True)
    if then == "wait":
        time.sleep(WAIT)
    # The end of this process must end the workers, which still prefetch.


if __name__ == "__main__":
    main(*sys.argv[1:])
