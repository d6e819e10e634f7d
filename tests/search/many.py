"""Compare searches of many random models with enumeration; slower than the test suite.

    python tests/search/many.py --models 20000

Tables of probabilities with alpha 1, 1.2, 1.5 and 2, beams 1 to 10, every stopping rule, length
limits, ensembles, constraints with forced prefixes, and exact search, in float32 and float64; then
sentences of small real networks of every kind, two for each twenty tables. It stops with an
assertion at the first certified answer that differs, else it prints how often each level was given.
"""

import argparse
import math
import random
import time
from collections import Counter

import torch
from checks import check
from enumeration import enumerate_support
from networks import DECODERS, network, sentences, stepper
from tables import Table, TableStepper
from test_beam import ALPHAS, OneOf
from test_constraints import CONSTRAINTS, allowed_part

from onmt_entmax.search import Budget, EnsembleStepper, SearchConfig, beam_search, exact_search

STOPS = ("exhaustive", "optimal", "first")
KINDS = ("table", "ensemble", "constraints", "exact search")


def check_table(seed: int) -> tuple[str, str]:
    """Search one random model and compare; returns its kind and the level of its certificate."""
    draw, kind = random.Random(seed), KINDS[seed % len(KINDS)]
    size = draw.choice([5, 6] if kind == "constraints" else [3, 4, 5, 6])
    length = draw.choice([0, 1, 2, 3 if kind == "ensemble" else 4])
    precise = draw.random() < 0.5
    table = Table(seed, draw.choice(ALPHAS), size, draw.choice([1.0, 2.0, 4.0]))
    model = TableStepper(size, dtype=torch.float64 if precise else torch.float32)
    batch: list = [table]
    tolerance = 1e-9 if precise else 1e-5
    if kind == "ensemble":
        tables = [Table(seed + 7 * i, draw.choice(ALPHAS), 4) for i in range(3)]
        model = EnsembleStepper([OneOf(tables, member) for member in range(3)])
        batch, tolerance = [None], 1e-6
    support, ruled_out = enumerate_support(model, batch, length, 5000), None
    beam, n_best = draw.randint(1, 10), draw.choice([0, 1, 1, 3])
    config = SearchConfig(beam, n_best, length, draw.choice(STOPS))
    if kind == "constraints":
        wish, prefix = draw.choice(list(CONSTRAINTS.values())), draw.choice([(), (2,), (2, 2)])
        config = SearchConfig(beam, n_best, length, config.stop, wish)
        result = beam_search(model, batch, config, [prefix])[0]
        asked = allowed_part(support, wish, prefix)
        others = [p for string, p in support.strings.items() if string not in asked.strings]
        ruled_out = max([*others, *support.excluded.values()], default=-math.inf)
        support = asked
    elif kind == "exact search":
        config = SearchConfig(beam, max(1, n_best), length)
        result = exact_search(model, batch, config, Budget(rows=draw.choice([1, 3, 64])))
    else:
        result = beam_search(model, batch, config)[0]
    check(result, support, config, tolerance, ruled_out)
    return kind, result.certificate.level


def check_network(seed: int) -> list[tuple[str, str]]:
    """Do the same for two sentences of a small real network."""
    draw = random.Random(seed)
    kind = draw.choice(list(DECODERS))
    model = stepper(network(kind, draw.choice(ALPHAS), seed, double=draw.random() < 0.5))
    levels = []
    for batch in sentences(2, seed):
        support = enumerate_support(model, batch, 3, 1000)
        config = SearchConfig(draw.randint(1, 10), draw.choice([0, 1, 2]), 3, draw.choice(STOPS))
        result = beam_search(model, batch, config)[0]
        check(result, support, config, 1e-4)
        levels.append((kind, result.certificate.level))
    return levels


def main() -> None:
    """Check the models, then print how often each level was certified."""
    parser = argparse.ArgumentParser(description="Compare searches with enumeration.")
    parser.add_argument("--models", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=10**6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started, levels = time.monotonic(), Counter[tuple[str, str]]()
    for seed in range(options.seed, options.seed + options.models):
        levels[check_table(seed)] += 1
    for seed in range(options.models // 20):
        levels.update(check_network(seed))
    for (kind, level), count in sorted(levels.items()):
        print(f"{kind:20} {level:12} {count:6}")
    print(f"{levels.total()} answers, none differs, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
