"""Compare searches of random models with brute-force enumeration.

    python -m tests.faults.certificates --models 10000 --seed 1

Every model is small enough to list all its sequences. Each is searched once or more, with random
alphas from 1 to 3, beams, stopping rules, numbers of hypotheses and options, and every claim of the
result is checked against the list. Status 1, with the seeds to repeat, if one is wrong.
"""

import argparse
import math
import random
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tqdm import tqdm

from onmt_entmax.nn.transformer import KINDS as ATTENTIONS
from onmt_entmax.nn.transformer import LEARNED, SHARED
from onmt_entmax.search import (
    Budget,
    Constraints,
    EnsembleStepper,
    ListedSequences,
    Penalties,
    SearchConfig,
    SearchResult,
    Stepper,
    average_sequences,
    beam_search,
    exact_search,
    score_targets,
)
from onmt_entmax.search.config import Stop
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, enumerate_support
from tests.search.expressions import (
    check_probability,
    compiled,
    random_expression,
    satisfying,
)
from tests.search.networks import DECODERS, network, sentences, stepper, together
from tests.search.tables import Table, TableStepper
from tests.search.test_beam import OneOf

STOPS: tuple[Stop, ...] = ("exhaustive", "optimal", "first")
PENALTIES = (
    Penalties("wu", 0.8),
    Penalties("avg"),
    Penalties(coverage_penalty="summary", beta=0.01),
    Penalties("wu", 0.5, "wu", 0.1),
)
# Of a network's tokens, 0 is the unknown token, 3 the end, 4 and 5 are words.
NETWORK_CONSTRAINTS = (
    Constraints(min_length=2),
    Constraints(block_ngram_repeat=2),
    Constraints(block_ngram_repeat=1, ignore_when_blocking=frozenset({4})),
    Constraints(banned=frozenset({0})),
    Constraints(1, 2, frozenset({4}), frozenset({0})),
)
CONSTRAINTS = {
    "minimum": Constraints(min_length=2),
    "bigrams": Constraints(block_ngram_repeat=2),
    "words": Constraints(block_ngram_repeat=1, ignore_when_blocking=frozenset({2})),
    "banned": Constraints(banned=frozenset({3})),
    "all": Constraints(1, 2, frozenset({4}), frozenset({2})),
}


def is_allowed(
    tokens: tuple[int, ...], wish: Constraints, forced: Sequence[int], complete: bool
) -> bool:
    """Tell whether the constraints allow a sequence, or a prefix of one."""
    known = min(len(forced), len(tokens))
    if tokens[:known] != tuple(forced[:known]) or (complete and len(tokens) < len(forced)):
        return False
    if complete and len(tokens) < wish.min_length:
        return False
    if wish.banned & set(tokens[len(forced) :]):
        return False
    n = wish.block_ngram_repeat
    grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)] if n else []
    return not any(
        gram in grams[:i] and not wish.ignore_when_blocking & set(gram)
        for i, gram in enumerate(grams)
        if i + n > len(forced)
    )


def allowed_part(
    support: EnumeratedSupport, wish: Constraints, forced: Sequence[int] = ()
) -> EnumeratedSupport:
    """Return the part of the support that the constraints allow."""
    return EnumeratedSupport(
        {s: p for s, p in support.sequences.items() if is_allowed(s, wish, forced, True)},
        {s: p for s, p in support.prefixes.items() if is_allowed(s, wish, forced, False)},
        {(): 0.0},  # what was excluded is checked by its mass
    )


def reward_of(draw: random.Random) -> Penalties:
    """Return a random length reward."""
    return Penalties(length_reward=draw.uniform(0.1, 2), length_ratio=draw.uniform(0.5, 2))


def score(
    penalties: Penalties, tokens: tuple[int, ...], log_prob: float, source_length: int = 0
) -> float:
    """Return OpenNMT-py's score, or with a length reward; attention is that of `TableStepper`."""
    with_end = len(tokens) + 1
    log_prob += penalties.length_reward * min(with_end, penalties.length_ratio * source_length)
    divisor = {
        "none": 1.0,
        "wu": ((5 + len(tokens) + 2) / 6) ** penalties.alpha,
        "avg": len(tokens) + 2.0,
    }[penalties.length_penalty]
    prefixes = [tokens[:i] for i in range(len(tokens) + 1)]
    covered = sum(sum(prefix) + 10.0 * len(prefix) for prefix in prefixes)
    penalty = {"none": 0.0, "summary": max(covered, 1.0) - 1.0}
    penalty["wu"] = -math.log(min(covered, 1.0)) if covered else math.inf
    return log_prob / divisor - penalties.beta * penalty[penalties.coverage_penalty]


Levels = list[str]


def alpha_of(draw: random.Random) -> float:
    """Return an alpha from 1 to 3: a usual one, or one such as a model may learn."""
    usual = draw.choice([1.0, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0])
    return usual if draw.random() < 0.7 else draw.uniform(1.0, 3.0)


def config_of(draw: random.Random, length: int, **options: Any) -> SearchConfig:
    """Return random options of a beam search."""
    n_best = draw.choice([0, 1, 1, 3])
    return SearchConfig(draw.randint(1, 10), n_best, length, draw.choice(STOPS), **options)


def check_result(
    result: SearchResult,
    support: EnumeratedSupport,
    config: SearchConfig,
    tolerance: float,
    ruled_out: float | None = None,
) -> str:
    """Check a result, its gap too, and return the level of its certificate."""
    check(result, support, config, tolerance, ruled_out)
    certificate = result.certificate
    if result.hypotheses and config.n_best == 0:
        listed = {hypothesis.tokens for hypothesis in result.hypotheses}
        outside = [p for tokens, p in support.sequences.items() if tokens not in listed]
        unseen = max([*outside, *support.prefixes.values()], default=-math.inf)
        assert certificate.gap <= result.hypotheses[0].log_prob - unseen + tolerance
    if config.n_best != 1:
        assert len(result.hypotheses) == min(config.n_best or math.inf, result.finished)
    return certificate.level


# --- Tables of probabilities --------------------------------------------------------------------


def table_of(seed: int, draw: random.Random, least: int = 3) -> tuple[Table, TableStepper, float]:
    """Return a table, its stepper, and how exactly its probabilities must be met."""
    table = Table(seed, alpha_of(draw), draw.randint(least, 6), draw.choice([1.0, 2.0, 4.0]))
    precise = draw.random() < 0.5
    dtype = torch.float64 if precise else torch.float32
    model = TableStepper(table.vocabulary_size, dtype=dtype, attention=True)
    model.dense = draw.random() < 0.4  # then a search may begin with a single prefix
    return table, model, 1e-9 if precise else 1e-5


def beam(seed: int, draw: random.Random) -> Levels:
    """A beam search of several sentences, together and each alone."""
    _, model, tolerance = table_of(seed, draw)
    size, length = model.vocabulary_size, draw.choice([0, 1, 2, 3, 4])
    tables = [Table(seed + i, alpha_of(draw), size) for i in range(draw.randint(1, 4))]
    config = config_of(draw, length)
    # Every other step of the stepper is of another kind, so the last bits may differ.
    alone = [beam_search(model, [table], config)[0] for table in tables]
    batch = beam_search(model, tables, config)
    for table, one, other in zip(tables, alone, batch, strict=True):
        support = enumerate_support(model, [table], length, 5000)
        check_result(one, support, config, tolerance)
        check_result(other, support, config, tolerance)
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in other.hypotheses]
        assert one.certificate == other.certificate
    return [result.certificate.level for result in alone]


def constraints(seed: int, draw: random.Random) -> Levels:
    """Lengths, bans, blocked n-grams and forced prefixes."""
    table, model, tolerance = table_of(seed, draw, 5)
    length = draw.choice([1, 2, 3, 4])
    wish = draw.choice(list(CONSTRAINTS.values()))
    prefix = tuple(draw.choice([2, 3, 4]) for _ in range(draw.choice([0, 0, 1, 2])))[:length]
    config = config_of(draw, length, constraints=wish)
    whole = enumerate_support(model, [table], length, 5000)
    results = [
        beam_search(model, [table], config, [prefix])[0],
        exact_search(model, [table], config, Budget(draw.choice([5, 10_000])), prefix),
    ]
    asked = allowed_part(whole, wish, prefix)
    others = [p for tokens, p in whole.sequences.items() if tokens not in asked.sequences]
    ruled_out = max([*others, *whole.excluded.values()], default=-math.inf)
    for result in results:
        check(result, asked, config, tolerance, ruled_out)
    return [result.certificate.level for result in results]


def check_scores(result: SearchResult, scores: dict[tuple[int, ...], float], limit: bool) -> str:
    """Check a result under penalties against the scores of all sequences; return its level.

    `limit` tells whether the length limit cuts sequences.
    """
    for hypothesis in result.hypotheses:
        assert math.isclose(hypothesis.score, scores[hypothesis.tokens], abs_tol=1e-4)
    found = [hypothesis.score for hypothesis in result.hypotheses]
    assert found == sorted(found, reverse=True)
    certificate = result.certificate
    if certificate.level == "exhaustive":
        assert not limit
        assert result.finished == len(scores)
    ranked = sorted(scores.values(), reverse=True)
    for ours, best in zip(found[: certificate.proven], ranked, strict=False):
        assert math.isclose(ours, best, abs_tol=1e-4) or ours == best
    assert certificate.level != "none" or not certificate.proven
    return certificate.level


def penalties(seed: int, draw: random.Random) -> Levels:
    """Length and coverage penalties."""
    table, model, _ = table_of(seed, draw)
    penalty = draw.choice(PENALTIES)
    beam_size, n_best = draw.randint(1, 10), draw.choice([1, 1, 2])
    config = SearchConfig(beam_size, n_best, 4, draw.choice(STOPS), penalties=penalty)
    support = enumerate_support(model, [table], 4, 5000)
    scores = {tokens: score(penalty, tokens, p) for tokens, p in support.sequences.items()}
    result = beam_search(model, [table], config)[0]
    whole = exact_search(model, [table], config, start=result)
    assert whole.certificate.proven >= result.certificate.proven
    if not support.prefixes:
        assert whole.certificate.proven >= min(config.n_best, len(scores))
    return [check_scores(each, scores, bool(support.prefixes)) for each in (result, whole)]


def reward(seed: int, draw: random.Random) -> Levels:
    """A length reward: proofs are about longer sequences than the limit allows, too."""
    _, model, _ = table_of(seed, draw)
    size, beam_size, n_best = model.vocabulary_size, draw.randint(1, 10), draw.choice([1, 1, 3])
    tables = [Table(seed + i, alpha_of(draw), size, 2.0, 1.0) for i in range(3)]
    rewarded, limit = reward_of(draw), draw.choice([2, 3, 5])
    config = SearchConfig(beam_size, n_best, limit, draw.choice(STOPS), penalties=rewarded)
    levels, sources = [], model.source_lengths(tables)
    for table, source, result in zip(
        tables, sources, beam_search(model, tables, config), strict=True
    ):
        support = enumerate_support(model, [table], 5, 5000)
        scores = {
            tokens: score(rewarded, tokens, p, source) for tokens, p in support.sequences.items()
        }
        cut = bool(enumerate_support(model, [table], limit, 5000).prefixes)
        whole = exact_search(model, [table], config, start=result)
        assert whole.certificate.proven >= result.certificate.proven
        assert cut or whole.certificate.proven >= min(n_best, len(scores))
        levels += [check_scores(each, scores, cut) for each in (result, whole)]
    return levels


def exact(seed: int, draw: random.Random) -> Levels:
    """An exact search, or a list of the support down to some mass."""
    table, model, tolerance = table_of(seed, draw)
    length, n_best = draw.choice([1, 2, 3, 4]), draw.choice([0, 1, 1, 3])
    config = SearchConfig(draw.randint(1, 10), n_best, length)
    budget = Budget(draw.choice([5, 10_000]), draw.choice([3, 20_000]), draw.choice([1, 3, 64]))
    mass = draw.choice([1.0, 0.9, 0.5])
    support = enumerate_support(model, [table], length, 5000)
    result = exact_search(model, [table], config, budget, mass=mass)
    check(result, support, config, tolerance)
    whole = budget.expansions > 5 and budget.states > 3
    if whole and n_best:
        unseen = max(support.prefixes.values(), default=-math.inf) + tolerance
        provable = sum(p > unseen for p in support.sequences.values())
        assert result.certificate.proven >= min(n_best, provable)
    if whole and not n_best and not support.prefixes:
        assert result.certificate.mass >= min(mass, 1 - result.certificate.excluded) - tolerance
    return [result.certificate.level]


def ensemble(seed: int, draw: random.Random) -> Levels:
    """The mean of next-token probabilities."""
    tables = [Table(seed + 7 * i, alpha_of(draw), 4) for i in range(draw.randint(2, 3))]
    model = EnsembleStepper([OneOf(tables, member) for member in range(len(tables))])
    length = draw.choice([0, 1, 2, 3])
    support, config = enumerate_support(model, [None], length, 5000), config_of(draw, length)
    return [check_result(beam_search(model, [None], config)[0], support, config, 1e-6)]


def sequences(seed: int, draw: random.Random) -> Levels:
    """The mean of sequence probabilities of models with other vocabularies."""
    parts = [draw.randint(1, 3) for _ in range(draw.randint(2, 3))]
    weights = [part / sum(parts) for part in parts]
    listed, unfinished = [], 0.0
    truth: defaultdict[str, float] = defaultdict(float)
    for member, weight in enumerate(weights):
        table, model, _ = table_of(seed + 11 * member, draw)
        support = enumerate_support(model, [table], 3, 5000)
        config = SearchConfig(draw.randint(1, 10), 0, 3, draw.choice(STOPS))
        result = beam_search(model, [table], config)[0]
        listed.append(
            ListedSequences(
                {str(h.tokens): h.prob for h in result.hypotheses}, result.certificate.bound
            )
        )
        for tokens, log_prob in support.sequences.items():
            truth[str(tokens)] += weight * math.exp(log_prob)
        unfinished += weight * math.exp(max(support.prefixes.values(), default=-math.inf))
    found = average_sequences(listed, weights)
    for text, probability in zip(found.sequences, found.probabilities, strict=True):
        assert probability - 1e-6 <= truth[text] <= probability + found.bound + 1e-6
    unlisted = [p for text, p in truth.items() if text not in found.sequences]
    assert max(unlisted, default=0.0) <= found.bound + 1e-6
    if found.level == "exhaustive":
        assert not unlisted
    for rank, text in enumerate(found.sequences[: found.proven]):
        later = set(truth) - set(found.sequences[: rank + 1])
        assert truth[text] >= max((truth[other] for other in later), default=0.0) - 1e-6
    if found.level == "optimal":
        first = truth[found.sequences[0]]
        assert first >= max(truth.values()) - 1e-6
        rest = [p for text, p in truth.items() if text != found.sequences[0]]
        most = max([*rest, 1e-300])
        # Probabilities and bounds are float32 sums: their ratio is known up to 1e-6 of the smaller.
        assert found.gap <= math.log(first / most) + 2e-6 * (1 + 1 / max(most, 1e-6))
    return [found.level]


def check_automaton(
    model: Stepper,
    batch: Any,
    draw: random.Random,
    words: list[int],
    length: int,
    tolerance: float,
) -> Levels:
    """Search for outputs that satisfy a random expression: by beam, exactly, as a list."""
    expression, matches = random_expression(draw, words)
    automaton = compiled(expression, words, model.eos)
    whole = enumerate_support(model, batch, length, 5000)
    asked = satisfying(whole, automaton, matches)
    others = [p for tokens, p in whole.sequences.items() if tokens not in asked.sequences]
    ruled_out = max([*others, *whole.excluded.values()], default=-math.inf)
    config = config_of(draw, length)
    budget = Budget(draw.choice([5, 10_000]), rows=draw.choice([1, 3, 64]))
    mass = draw.choice([1.0, 0.9, 0.5])
    results = [
        beam_search(model, batch, config, automata=[automaton])[0],
        exact_search(model, batch, config, budget, mass=mass, automaton=automaton),
    ]
    for result in results:
        check(result, asked, config, tolerance, ruled_out)
        check_probability(result, whole, matches, tolerance)
    if not config.n_best and budget.expansions > 5 and not whole.prefixes:
        wanted = mass * sum(map(math.exp, asked.sequences.values()))
        assert results[1].certificate.mass >= wanted - tolerance
    return [result.certificate.level for result in results]


def automata(seed: int, draw: random.Random) -> Levels:
    """Outputs that satisfy an expression, of one table or an ensemble."""
    size, dtype = draw.randint(4, 6), draw.choice([torch.float64, torch.float32])
    tables = [Table(seed + i, alpha_of(draw), size) for i in range(draw.choice([1, 1, 2]))]
    excluded = draw.choice([(), (0,)])  # without any, all that the list has may be an output
    model: Stepper = TableStepper(size, excluded, dtype)
    batch: Any = tables
    if len(tables) > 1:
        model, batch = EnsembleStepper([OneOf(tables, member) for member in range(2)]), [None]
    words = [token for token in range(size) if token not in (0, 1)]
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    return check_automaton(model, batch, draw, words, draw.choice([1, 2, 3, 4]), tolerance)


def automata_batch(seed: int, draw: random.Random) -> Levels:
    """Sentences with an automaton each, or without one, in a batch and alone."""
    tables = [Table(seed + i, alpha_of(draw)) for i in range(draw.randint(2, 5))]
    wanted = [
        compiled(random_expression(draw, [2, 3, 4])[0], [2, 3, 4], 1)
        if draw.random() < 0.8
        else None
        for _ in tables
    ]
    if draw.random() < 0.3:
        wanted = [wanted[0]] * len(tables)
    config, model = config_of(draw, 3), TableStepper()
    batch = beam_search(model, tables, config, automata=wanted)
    for table, automaton, result in zip(tables, wanted, batch, strict=True):
        alone = beam_search(model, [table], config, automata=[automaton])[0]
        assert [h.tokens for h in alone.hypotheses] == [h.tokens for h in result.hypotheses]
        one, other = alone.certificate, result.certificate
        assert (one.level, one.proven, one.bound) == (other.level, other.proven, other.bound)
        assert one.satisfied == pytest.approx(other.satisfied, abs=1e-12)
    return [result.certificate.level for result in batch]


# --- Networks -----------------------------------------------------------------------------------


def network_of(seed: int, draw: random.Random) -> tuple[Any, float]:
    """Return the stepper of a random network, and how exactly its probabilities must be met."""
    kind, double = draw.choice(list(DECODERS)), draw.random() < 0.8
    changes: dict[str, Any] = {"global_attention_alpha": alpha_of(draw)}
    if "decoder_type" not in DECODERS[kind]:
        changes["global_attention"] = draw.choice(["dot", "general", "mlp"])
    else:
        averaged = ["decoder"] if kind == "average" else []  # has no alpha
        for which in sorted({*ATTENTIONS} - {*averaged}):
            alpha = draw.choice([1.0, alpha_of(draw), LEARNED, SHARED])
            changes[f"{which}_attention_alpha"] = alpha
    model = network(kind, alpha_of(draw), seed, double, **changes)
    # In float32 a score next to the threshold has few digits, and so has the logarithm of a rare
    # token (docs/certificates.md, "Floating point").
    return stepper(model), 1e-2 if not double else 1e-3 if kind == "mean" else 1e-7


def networks(seed: int, draw: random.Random) -> Levels:
    """Recurrent networks with all attentions, Transformers: a batch, and each sentence alone."""
    model, tolerance = network_of(seed, draw)
    length, batches = draw.choice([1, 2, 3]), sentences(draw.randint(1, 3), seed)
    config = config_of(draw, length)
    levels = []
    for batch, other in zip(batches, beam_search(model, together(batches), config), strict=True):
        support = enumerate_support(model, batch, length, 5000)
        result = beam_search(model, batch, config)[0]
        levels.append(check_result(result, support, config, tolerance))
        check_result(other, support, config, tolerance)
        if tolerance < 1e-5:
            assert other.certificate.level == result.certificate.level
            assert [h.tokens for h in other.hypotheses] == [h.tokens for h in result.hypotheses]
    return levels


def network_options(seed: int, draw: random.Random) -> Levels:
    """Networks under constraints, prefixes or length penalties, and forced decoding."""
    model, tolerance = network_of(seed, draw)
    (batch,), length = sentences(1, seed), 3
    support = enumerate_support(model, batch, length, 5000)
    for tokens, log_prob in list(support.sequences.items())[:1]:
        (scored,) = score_targets(model, batch, [tokens])
        assert math.isclose(scored.log_prob, log_prob, abs_tol=tolerance)
    if draw.random() < 0.5:
        penalty = draw.choice([*PENALTIES[:2], reward_of(draw)])
        config = SearchConfig(draw.randint(1, 10), 1, length, penalties=penalty)
        source = int(batch.source_lengths[0])
        scores = {
            tokens: score(penalty, tokens, p, source) for tokens, p in support.sequences.items()
        }
        return [check_scores(beam_search(model, batch, config)[0], scores, bool(support.prefixes))]
    wish, prefix = draw.choice(NETWORK_CONSTRAINTS), draw.choice([(), (4,), (5, 4)])
    config = config_of(draw, length, constraints=wish)
    result = beam_search(model, batch, config, [prefix])[0]
    asked = allowed_part(support, wish, prefix)
    others = [p for tokens, p in support.sequences.items() if tokens not in asked.sequences]
    ruled_out = max([*others, *support.excluded.values()], default=-math.inf)
    return [check_result(result, asked, config, tolerance, ruled_out)]


def network_automata(seed: int, draw: random.Random) -> Levels:
    """Outputs of a network, or of an ensemble, that satisfy an expression."""
    members = [network_of(seed + 13 * i, draw) for i in range(draw.choice([1, 1, 2]))]
    models: list[Stepper] = [member for member, _ in members]
    model = models[0] if len(models) == 1 else EnsembleStepper(models)
    tolerance = max(tolerance for _, tolerance in members)
    (batch,) = sentences(1, seed)
    return check_automaton(model, batch, draw, [0, 4, 5], draw.choice([1, 2, 3]), tolerance)


def network_ensemble(seed: int, draw: random.Random) -> Levels:
    """Ensembles of networks of any kinds, by beam and by exact search."""
    members = [network_of(seed + 13 * i, draw) for i in range(2)]
    model = EnsembleStepper([member for member, _ in members])
    tolerance = max(tolerance for _, tolerance in members)
    (batch,) = sentences(1, seed)
    support = enumerate_support(model, batch, 2, 5000)
    config = config_of(draw, 2)
    levels = [check_result(beam_search(model, batch, config)[0], support, config, tolerance)]
    result = exact_search(model, batch, config)
    check(result, support, config, tolerance)
    return [*levels, result.certificate.level]


Kinds = dict[str, Callable[[int, random.Random], Levels]]
KINDS: Kinds = {
    "beam": beam,
    "constraints": constraints,
    "penalties": penalties,
    "length reward": reward,
    "exact": exact,
    "ensemble": ensemble,
    "sequence ensemble": sequences,
    "automata": automata,
    "automata, batch": automata_batch,
    "network": networks,
    "network, options": network_options,
    "network, automata": network_automata,
    "network ensemble": network_ensemble,
}


def check_models(
    models: int, seed: int, kinds: Kinds = KINDS
) -> tuple[Counter[tuple[str, str]], list[int]]:
    """Check models; return how often each kind reached each level, and the seeds that failed."""
    levels, failed, names = Counter[tuple[str, str]](), [], list(kinds)
    first = seed * 1_000_000 % 2**62  # PyTorch takes no larger seeds
    for number in tqdm(range(first, first + models), disable=models < 1000):
        name = names[number % len(names)]
        try:
            reached = kinds[name](number, random.Random(number))
        except Exception:  # reported with its traceback, and the others are checked all the same
            print(f"seed {number} ({name}):")
            traceback.print_exc()
            failed.append(number)
        else:
            levels.update((name, level) for level in reached)
    return levels, failed


def main(kinds: Kinds = KINDS) -> int:
    """Check the models, and print how often each level was certified."""
    parser = argparse.ArgumentParser(description="Compare searches with enumeration.")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    levels, failed = check_models(options.models, options.seed, kinds)
    for (kind, level), count in sorted(levels.items()):
        print(f"{kind:20} {level:12} {count:6}")
    print(
        f"{options.models} models, {levels.total()} answers, {len(failed)} wrong, "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
