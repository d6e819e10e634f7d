"""Samples against the distribution that they are drawn from, spelt out over all outputs."""

import math
from collections import Counter
from typing import Any

import pytest
import torch

from onmt_entmax.search import ModelStepper, Sample, Sampling, sample
from onmt_entmax.search.stepper import SearchError, Stepper
from tests.search.networks import VOCABULARIES, network, sentences, stepper, together
from tests.search.tables import Fixed, Table, TableStepper

Outcome = tuple[tuple[int, ...], bool]  # tokens, complete


def outcome(drawn: Sample) -> Outcome:
    """What tells samples apart."""
    return drawn.tokens, drawn.complete


def kept(probabilities: dict[int, float], sampling: Sampling) -> dict[int, float]:
    """The options of one step, in plain Python."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    if sampling.topp:
        reached, count = 0.0, 0
        for _, p in ranked:
            count += 1
            reached += p
            if reached >= sampling.topp * sum(probabilities.values()):
                break
        ranked = ranked[:count]
    if sampling.topk > 0:
        least = ranked[: sampling.topk][-1][1]
        ranked = [pair for pair in ranked if pair[1] >= least]
    total = sum(p for _, p in ranked)
    return {token: p / total for token, p in ranked}


def distribution(
    model: Stepper, batch: Any, sampling: Sampling, max_length: int, prefix: tuple[int, ...] = ()
) -> dict[Outcome, float]:
    """Return the probability of every outcome, following one prefix at a time."""
    found: dict[Outcome, float] = Counter()

    def follow(state: Any, last: int, tokens: tuple[int, ...], probability: float) -> None:
        step = model.step(state, torch.tensor([last]))
        row = step.log_probs[0].double().exp().tolist()
        options = {t: p for t, p in enumerate(row) if p > 0 and t not in model.excluded}
        if len(tokens) < len(prefix):
            token = prefix[len(tokens)]
            if token in options:
                follow(step.state, token, (*tokens, token), probability)
            return
        if not options:
            found[tokens, False] += probability
            return
        options = kept(options, sampling)
        for token, p in options.items():
            if token == model.eos:
                found[tokens, True] += probability * p
            elif len(tokens) == max_length:
                found[tokens, False] += probability * p
            else:
                follow(step.state, token, (*tokens, token), probability * p)

    with torch.inference_mode():
        follow(model.start(batch), model.bos, (), 1.0)
    return found


def least_likely(number: int, expected: float) -> float:
    """Return the probability of seeing so many rare outcomes or more (Poisson)."""
    if number == 0:
        return 1.0
    logs = (k * math.log(expected) - math.lgamma(k + 1) for k in range(number, number + 100))
    return math.exp(-expected) * sum(map(math.exp, logs))


def check_frequencies(counts: Counter[Any], probabilities: dict[Any, float]) -> None:
    """Refuse counts that would come about once in a million times (five sigma)."""
    assert set(counts) <= set(probabilities)
    total = counts.total()
    expected = {key: total * p for key, p in probabilities.items()}
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    # Rare outcomes count as one. If it is rare too, its count is not nearly normal.
    rare = [key for key, number in expected.items() if number < 5]
    together = sum(counts[key] for key in rare), sum(expected[key] for key in rare)
    cells = [(counts[key], number) for key, number in expected.items() if number >= 5]
    if together[1] >= 5:
        cells.append(together)
    elif rare:
        assert least_likely(*together) > 1e-6
    if len(cells) < 2:
        return
    # Wilson and Hilferty (1931): the cube root of chi squared is nearly normal.
    freedom = len(cells) - 1
    statistic = sum((n - e) ** 2 / e for n, e in cells)
    root, mean = (statistic / freedom) ** (1 / 3), 1 - 2 / (9 * freedom)
    assert (root - mean) / math.sqrt(2 / (9 * freedom)) < 5


def pairs(probabilities: dict[Any, float]) -> dict[Any, float]:
    """Probabilities of the first two draws without replacement."""
    return {
        (a, b): p * q / (1 - p)
        for a, p in probabilities.items()
        for b, q in probabilities.items()
        if a != b
    }


OPTIONS = [Sampling(), Sampling(topk=2), Sampling(topp=0.7), Sampling(3, 0.9)]


@pytest.mark.parametrize("sampling", OPTIONS, ids=str)
def test_samples_have_the_frequencies_of_the_distribution(sampling: Sampling) -> None:
    table, model = Table(3, 1.2, 5, 1.0), TableStepper()
    truth = distribution(model, [table], sampling, 2)
    (drawn,) = sample(model, [table], sampling, 2000, 2)
    assert len(drawn) == 2000
    check_frequencies(Counter(map(outcome, drawn)), truth)
    for one in drawn[:20]:
        assert one.prob == pytest.approx(truth[outcome(one)], abs=1e-9)


def test_all_tokens_that_tie_with_the_last_of_the_best_may_be_drawn() -> None:
    model = Fixed({(): {2: 0.4, 3: 0.25, 4: 0.25, 5: 0.1}})
    (drawn,) = sample(TableStepper(7), [model], Sampling(topk=2), 100)
    assert {one.tokens for one in drawn} == {(2,), (3,), (4,)}
    for one in drawn:
        assert one.prob == pytest.approx((0.4 if one.tokens == (2,) else 0.25) / 0.9)


def test_no_more_tokens_are_drawn_than_reach_the_probability() -> None:
    model = Fixed({(): {2: 0.5, 3: 0.25, 4: 0.25}})
    for topp, expected in ((0.49, {(2,)}), (0.51, {(2,), (3,)}), (0.8, {(2,), (3,), (4,)})):
        (drawn,) = sample(TableStepper(7), [model], Sampling(topp=topp), 100)
        assert {one.tokens for one in drawn} == expected


def test_samples_without_replacement_are_drawn_one_after_the_other() -> None:
    table, model = Table(1, 1.5, 4, 1.5), TableStepper(4)
    truth = distribution(model, [table], Sampling(), 1)
    assert len(truth) == 4
    drawn = sample(model, [table] * 1000, Sampling(distinct=True), 2, 1)
    check_frequencies(Counter(tuple(map(outcome, each)) for each in drawn), pairs(truth))
    (everything,) = sample(model, [table], Sampling(distinct=True), 50, 1)
    assert {outcome(one) for one in everything} == set(truth)
    assert len(everything) == len(truth)
    for one in everything:
        assert one.prob == pytest.approx(truth[outcome(one)], abs=1e-9)


@pytest.mark.parametrize("kind", ["input-feeding", "transformer"])
@pytest.mark.parametrize("distinct", [False, True])
def test_samples_do_not_depend_on_the_batch_but_on_seed_and_number(kind, distinct) -> None:
    model, batches = stepper(network(kind, 1.2, 2)), sentences(3, 4)
    sampling = Sampling(distinct=distinct, seed=5)
    tokens = [
        [one.tokens for one in drawn]
        for drawn in sample(model, together(batches), sampling, 4, 5, [7, 8, 9])
    ]
    for batch, number, wanted in zip(batches, [7, 8, 9], tokens, strict=True):
        (alone,) = sample(model, batch, sampling, 4, 5, [number])
        assert [one.tokens for one in alone] == wanted
    (other,) = sample(model, batches[0], Sampling(distinct=distinct, seed=6), 4, 5, [7])
    assert [one.tokens for one in other] != tokens[0]
    if not distinct:  # more samples begin with the same
        (more,) = sample(model, batches[0], sampling, 9, 5, [7])
        assert [one.tokens for one in more][:4] == tokens[0]


@pytest.mark.parametrize("kind", ["input-feeding", "transformer"])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_temperature_divides_the_scores(kind: str, alpha: float) -> None:
    model, (batch,) = network(kind, alpha, 3), sentences(1)
    other = network(kind, alpha, 3)
    with torch.no_grad():
        other.generator.weight /= 2.5
        other.generator.bias /= 2.5
    warm = ModelStepper(model, VOCABULARIES.target, temperature=2.5)
    truth = distribution(stepper(other), batch, Sampling(), 2)
    found = distribution(warm, batch, Sampling(), 2)
    assert found == pytest.approx(truth, abs=1e-9)
    assert found != pytest.approx(distribution(stepper(model), batch, Sampling(), 2), abs=1e-3)
    again = distribution(warm.double(), batch, Sampling(), 2)
    assert again == pytest.approx(truth, abs=1e-6)


def test_a_prefix_is_kept_and_one_that_is_impossible_leaves_no_sample() -> None:
    table, model = Table(2, 1.2, 5, 1.0), TableStepper()
    for sampling in (Sampling(topk=1), Sampling(distinct=True)):
        (drawn,) = sample(model, [table], sampling, 3, 3, prefixes=[(2, 3)])
        assert all(one.tokens[:2] == (2, 3) for one in drawn)
        truth = distribution(model, [table], sampling, 3, (2, 3))
        for one in drawn:
            assert one.prob == pytest.approx(truth[outcome(one)], abs=1e-9)
    only = Fixed({(): {1: 1.0}})
    for distinct in (False, True):
        two = [only, only]
        found = sample(TableStepper(7), two, Sampling(distinct=distinct), 2, prefixes=[(2,), ()])
        assert found[0] == ()
        assert [one.tokens for one in found[1]] == [()] * (1 if distinct else 2)


def test_a_dead_end_is_no_complete_output() -> None:
    model = Fixed({(): {2: 1.0}, (2,): {0: 1.0}})  # then only the start symbol
    (drawn,) = sample(TableStepper(7), [model], Sampling(), 1)
    assert drawn == (Sample((2,), 0.0, False),)
    broken = Fixed({(): {}})
    with pytest.raises(SearchError, match="no token a positive probability"):
        sample(TableStepper(7), [broken], Sampling(), 1)


@pytest.mark.parametrize("wrong", [{"topk": -2}, {"topp": 1.1}, {"temp": 0.0}, {"seed": -1}])
def test_values_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: must"):
        Sampling(**wrong)
