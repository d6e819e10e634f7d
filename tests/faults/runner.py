"""Run checks of random models, as the commands `certificates.py` and `decisions.py` do."""

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

# Most models of a run: runs of different seeds, which begin this far apart, share none.
_MOST_MODELS = 1_000_000


class CheckedModels(NamedTuple):
    """The results of checking many models."""

    levels: Counter[tuple[str, str]]
    """How often each kind of check met each level: by the name of the kind, and the level."""
    failed: list[int]
    """Seeds of the models about which a claim is wrong."""


def check_models(models: int, seed: int, checks: Mapping[str, Check]) -> CheckedModels:
    """Check models, each kind of check in turn.

    Args:
        models: number of models.
        seed: seed of the run; each model has a seed of its own.
        checks: the kinds of checks, by name.
    """
    checked = CheckedModels(Counter(), [])
    names = list(checks)
    first = seed * _MOST_MODELS % 2**62  # PyTorch takes no larger seeds
    for number in tqdm(range(first, first + models), disable=models < 1000):
        name = names[number % len(names)]
        try:
            levels = checks[name](number, random.Random(number))
        except Exception:  # of whatever kind: it is reported, and the next model is checked
            print(f"seed {number} ({name}):")
            traceback.print_exc()
            checked.failed.append(number)
        else:
            checked.levels.update((name, level) for level in levels)
    return checked


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
