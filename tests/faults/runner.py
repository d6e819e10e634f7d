"""Run checks of random models: `certificates.py` and `decisions.py` say which."""

import argparse
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from tqdm import tqdm

Check = Callable[[int, random.Random], Sequence[str]]
"""Draws a model and a request, and checks all that their search claims.

It takes a seed and a random generator of that seed. It returns the levels that were claimed, and
raises an error if a claim is wrong.
"""

_MOST_MODELS = 1_000_000  # of a run: runs of different seeds then draw different models


class Outcome(NamedTuple):
    """What checks of many models came to."""

    levels: Counter[tuple[str, str]]
    """How often each kind of check met each level, by the names of both."""
    failed: list[int]
    """Seeds of the models about which a claim is wrong."""


def check_models(models: int, seed: int, checks: Mapping[str, Check]) -> Outcome:
    """Check models, each kind of check in turn.

    Args:
        models: how many.
        seed: of the run.
        checks: by name of the kind.
    """
    outcome = Outcome(Counter(), [])
    names = list(checks)
    first = seed * _MOST_MODELS % 2**62  # PyTorch takes no larger seeds
    for number in tqdm(range(first, first + models), disable=models < 1000):
        name = names[number % len(names)]
        try:
            levels = checks[name](number, random.Random(number))
        except Exception:  # reported with its traceback, and the others are checked all the same
            print(f"seed {number} ({name}):")
            traceback.print_exc()
            outcome.failed.append(number)
        else:
            outcome.levels.update((name, level) for level in levels)
    return outcome


def main(checks: Mapping[str, Check]) -> int:
    """Check the models of the command line; print how often each level was met.

    Returns:
        The exit status: 1 if a claim is wrong.
    """
    parser = argparse.ArgumentParser(description="Compare searches with enumeration.")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    levels, failed = check_models(options.models, options.seed, checks)
    for (kind, level), count in sorted(levels.items()):
        print(f"{kind:20} {level:12} {count:6}")
    seconds = time.monotonic() - started
    print(
        f"{options.models} models, {levels.total()} answers, {len(failed)} wrong, {seconds:.0f} s"
    )
    return 1 if failed else 0
