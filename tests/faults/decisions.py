"""Compare minimum Bayes risk and samples of random models with brute-force enumeration.

    python -m tests.faults.decisions --models 2000 --seed 1

As `tests.faults.certificates`, whose models these are: tables of probabilities, recurrent networks
and Transformers, alphas from 1 to 3, ensembles of next tokens and of sequences.
"""

import math
import random
from collections import Counter
from typing import Any

import pytest

from onmt_entmax.report.combine import combined
from onmt_entmax.report.mbr import decide_record
from onmt_entmax.search import (
    EnsembleStepper,
    Sampling,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
    sample,
)
from onmt_entmax.search.mbr import UTILITIES, Decision, Utility, utilities
from tests.faults.certificates import (
    Kinds,
    Levels,
    alpha_of,
    main,
    network_of,
    table_of,
)
from tests.search.enumeration import EnumeratedSupport, enumerate_support
from tests.search.networks import sentences
from tests.search.tables import Table, TableStepper
from tests.search.test_beam import OneOf
from tests.search.test_mbr import compared_parts
from tests.search.test_sampling import check_frequencies, distribution, first_two, outcome


def text_of(tokens: tuple[int, ...]) -> str:
    """A text that chrF and edit distance can tell apart."""
    return " ".join("abcdefgh"[token] for token in tokens)


def record_of(result: SearchResult) -> dict[str, Any]:
    """The part of a report's record that decisions read."""
    certificate = result.certificate
    return {
        "id": 0,
        "source": "s",
        "certificate": certificate.level,
        "bound": certificate.bound,
        "mass": certificate.mass,
        "excluded": min(certificate.excluded, 1.0),
        "finished": result.finished,
        "hypotheses": [{"text": text_of(h.tokens), "prob": h.prob} for h in result.hypotheses],
    }


def searched(model: Any, batch: Any, length: int, draw: random.Random) -> dict[str, Any]:
    """The record of a random search that lists all it found."""
    if draw.random() < 0.3:
        mass = draw.choice([1.0, 0.9, 0.5])
        return record_of(exact_search(model, batch, SearchConfig(5, 0, length), mass=mass))
    config = SearchConfig(draw.randint(1, 10), draw.randint(1, 5), length, all_found=True)
    return record_of(beam_search(model, batch, config)[0])


def check_decision(
    found: Decision | None, truth: dict[str, float], open_mass: float, draw: random.Random
) -> str:
    """Check a decision against the probability of every output; return its level.

    `open_mass` is the probability of outputs beyond the length limit, which are not in `truth`.
    """
    if found is None:
        return "nothing found"
    tolerance = 2e-5

    def expected(texts: list[str]) -> dict[str, float]:
        if found.utility == "exact_match":
            return {text: truth.get(text, 0.0) for text in texts}
        table = utilities(found.utility, texts, list(truth))
        return dict(zip(texts, (table @ list(truth.values())).tolist(), strict=True))

    real = expected(list(truth))
    for text, low in zip(found.texts, found.expected, strict=True):
        assert low - tolerance <= real[text] <= low + found.slack + tolerance
    choice = real[found.texts[0]]
    if found.level == "exact":
        assert open_mass < tolerance
        assert set(found.texts) == set(truth)
    rival = 0.0 if found.utility == "exact_match" else open_mass
    if found.level != "none":
        others = [real[text] for text in found.texts[1:]]
        assert choice >= max(others, default=0.0) + (rival if others else 0.0) - tolerance
    if found.level in ("exact", "proven"):
        others = [value for text, value in real.items() if text != found.texts[0]]
        assert choice >= max(others, default=0.0) + (rival if others else 0.0) - tolerance
    if found.level == "proven":
        strange = [" ".join(draw.choices("abcdefgh", k=draw.randint(0, 6))) for _ in range(5)]
        known = [compared_parts(found.utility, text) for text in found.texts]
        new = [text for text in strange if compared_parts(found.utility, text) not in known]
        assert choice >= max(expected(new).values(), default=0.0) - tolerance
    return found.level


def known(support: EnumeratedSupport) -> tuple[dict[str, float], float]:
    """Probabilities of all texts, and of everything beyond the length limit."""
    truth = {text_of(tokens): math.exp(p) for tokens, p in support.sequences.items()}
    return truth, sum(map(math.exp, support.prefixes.values()))


def decided(model: Any, batch: Any, length: int, draw: random.Random) -> Levels:
    """Every utility of one search."""
    truth, open_mass = known(enumerate_support(model, batch, length, 5000))
    record = searched(model, batch, length, draw)
    return [
        f"{utility} {check_decision(decide_record(utility, record), truth, open_mass, draw)}"
        for utility in UTILITIES
    ]


def tables(seed: int, draw: random.Random) -> Levels:
    """Decisions of a table."""
    table, model, _ = table_of(seed, draw)
    return decided(model, [table], draw.choice([1, 2, 3]), draw)


def networks(seed: int, draw: random.Random) -> Levels:
    """Decisions of a recurrent network or a Transformer."""
    model, _ = network_of(seed, draw)
    return decided(model, sentences(1, seed)[0], draw.choice([1, 2]), draw)


def ensembles(seed: int, draw: random.Random) -> Levels:
    """Decisions of an ensemble of next tokens."""
    members = [Table(seed + 7 * i, alpha_of(draw), 4) for i in range(2)]
    model = EnsembleStepper([OneOf(members, i) for i in range(2)])
    return decided(model, [None], draw.choice([1, 2, 3]), draw)


def averages(seed: int, draw: random.Random) -> Levels:
    """Decisions of `combine`."""
    weights, truth, open_mass = [0.4, 0.6], Counter[str](), 0.0
    records = []
    for member, weight in enumerate(weights):
        table, model, _ = table_of(seed + 11 * member, draw)
        own, beyond = known(enumerate_support(model, [table], 2, 5000))
        open_mass += weight * beyond
        for text, probability in own.items():
            truth[text] += weight * probability
        records.append(searched(model, [table], 2, draw))
    record = combined(records, weights)
    utility: Utility = draw.choice(UTILITIES)
    return [check_decision(decide_record(utility, record), truth, open_mass, draw)]


def drawn_from(model: Any, batch: Any, length: int, draw: random.Random, seed: int) -> Levels:
    """Samples with and without replacement."""
    topk, topp = draw.choice([-1, -1, 1, 2, 3]), draw.choice([0.0, 0.0, 0.5, 0.9])
    sampling = Sampling(topk, topp, seed=seed)
    truth = distribution(model, batch, sampling, length)
    (drawn,) = sample(model, batch, sampling, 500, length)
    check_frequencies(Counter(map(outcome, drawn)), truth)
    (distinct,) = sample(model, batch, Sampling(topk, topp, 1.0, True, seed), 20, length)
    found = [outcome(one) for one in distinct]
    assert len(set(found)) == len(found) == min(20, len(truth))
    for one in (*drawn[:20], *distinct):
        assert one.prob == pytest.approx(truth[outcome(one)], abs=1e-4)
    return ["sampled"]


def samples(seed: int, draw: random.Random) -> Levels:
    """Samples of a table."""
    table, model, _ = table_of(seed, draw)
    return drawn_from(model, [table], draw.choice([1, 2, 3]), draw, seed)


def network_samples(seed: int, draw: random.Random) -> Levels:
    """Samples of a network, or of an ensemble of two."""
    model, _ = network_of(seed, draw)
    if draw.random() < 0.3:
        model = EnsembleStepper([model, network_of(seed + 5, draw)[0]])
    return drawn_from(model, sentences(1, seed)[0], draw.choice([1, 2]), draw, seed)


def distinct_pairs(seed: int, draw: random.Random) -> Levels:
    """The first two samples without replacement."""
    table, model = Table(seed, alpha_of(draw), 4), TableStepper(4)
    truth = distribution(model, [table], Sampling(), 1)
    if len(truth) < 2:
        return ["one output only"]
    drawn = sample(model, [table] * 300, Sampling(distinct=True, seed=seed), 2, 1)
    check_frequencies(Counter(tuple(map(outcome, each)) for each in drawn), first_two(truth))
    return ["sampled"]


KINDS: Kinds = {
    "mbr": tables,
    "mbr, network": networks,
    "mbr, ensemble": ensembles,
    "mbr, combine": averages,
    "samples": samples,
    "samples, network": network_samples,
    "samples, distinct": distinct_pairs,
}


if __name__ == "__main__":
    raise SystemExit(main(KINDS))
