"""Types and defaults of options that several benchmarks have."""

from __future__ import annotations

import argparse

from onmt_entmax.rules import number, positive, whole

COUNT = whole(1, 10**9)
ALPHA = number(1, 10**6)
POSITIVE = positive(10**9)


def choose_clock(options: argparse.Namespace) -> None:
    """Set `--clock` if it was not given: processor time, which other load disturbs least.

    Processor time adds up that of threads, so with several it is wall time.
    """
    if options.clock is None:
        options.clock = "cpu" if options.threads == 1 else "wall"
