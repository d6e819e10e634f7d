"""Diverse beam search against Algorithm 1 of Vijayakumar et al. (2018) in plain Python."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from onmt_entmax.search import Diversity, SearchConfig, SearchTask, beam_search, diverse_search
from tests.search.tables import BOS, EOS, Fixed, Table, TableStepper

Found = list[tuple[tuple[int, ...], float]]


def algorithm_1(
    table: Table, beam: int, groups: int, penalty: float, length: int, n_best: int
) -> Found:
    """Decode to the length limit, and return the tokens and log-probabilities that are listed."""
    live: list[Found] = [[((), 0.0)] for _ in range(groups)]
    found: list[Found] = [[] for _ in range(groups)]
    for _ in range(length + 1):
        uses: Counter[int] = Counter()
        for group in range(groups):
            longer: Found = []
            for prefix, log_prob in live[group]:
                for token, value in enumerate(table.log_probs(prefix)):
                    if token == EOS and value > -math.inf:
                        found[group].append((prefix, log_prob + value))
                    elif token not in (BOS, EOS) and value > -math.inf:
                        longer.append(((*prefix, token), log_prob + value))
            longer.sort(key=lambda each: penalty * uses[each[0][-1]] - each[1])
            live[group] = longer[: beam // groups]
            uses.update(prefix[-1] for prefix, _ in live[group])
    listed: Found = []
    best = [sorted(each, key=lambda pair: -pair[1])[: beam // groups] for each in found]
    for rank in range(beam // groups):
        same_rank = {each for own in best for each in own[rank : rank + 1]}
        listed += sorted(same_rank - {*listed}, key=lambda pair: -pair[1])
    return sorted(listed[:n_best], key=lambda pair: -pair[1])


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
def test_the_search_is_algorithm_1(alpha: float, stop: str) -> None:
    different = 0
    for seed in range(24):
        groups, size, penalty = 2 + seed % 2, 1 + seed % 3, [0.1, 0.5, 2.0, 20.0][seed % 4]
        beam, length = groups * size, 1 + seed % 5
        config = SearchConfig(beam, 1 + seed % beam, length, stop)  # type: ignore[arg-type]
        tables = [Table(seed + 1000 * i, alpha, 6, 1.0) for i in range(2)]
        results = diverse_search(TableStepper(6), tables, config, Diversity(groups, penalty))
        for table, result in zip(tables, results, strict=True):
            expected = algorithm_1(table, beam, groups, penalty, length, config.n_best)
            assert [h.tokens for h in result.hypotheses] == [tokens for tokens, _ in expected]
            log_probs = [log_prob for _, log_prob in expected]
            assert [h.log_prob for h in result.hypotheses] == pytest.approx(log_probs)
            plain = beam_search(TableStepper(6), [table], config)[0]
            different += [h.tokens for h in plain.hypotheses] != [tokens for tokens, _ in expected]
    assert different > 3


def test_one_group_or_groups_without_a_penalty_are_plain_beams() -> None:
    for seed in range(20):
        table, size = Table(seed, 1.5), 1 + seed % 4
        config = SearchConfig(size, size, 4)
        plain = [h.tokens for h in beam_search(TableStepper(), [table], config)[0].hypotheses]
        assert [tokens for tokens, _ in algorithm_1(table, size, 1, 0.5, 4, size)] == plain
        wide = SearchConfig(3 * size, 3 * size, 4)
        result = diverse_search(TableStepper(), [table], wide, Diversity(3, 0.0))[0]
        assert [h.tokens for h in result.hypotheses] == plain


def test_what_one_group_drops_and_another_keeps_is_not_dropped() -> None:
    model = Fixed({(): {2: 0.6, 3: 0.4}, (2,): {EOS: 1.0}, (3,): {EOS: 1.0}})
    config = SearchConfig(2, 2)
    result = diverse_search(TableStepper(7), [model], config, Diversity(2, 1.0))[0]
    assert [h.tokens for h in result.hypotheses] == [(2,), (3,)]
    assert result.certificate.level == "exhaustive"
    assert (result.certificate.dropped, result.certificate.mass) == (0, pytest.approx(1))
    same = diverse_search(TableStepper(7), [model], config, Diversity(2, 0.1))[0]
    assert [h.tokens for h in same.hypotheses] == [(2,)]
    assert (same.certificate.level, same.certificate.dropped, same.finished) == ("optimal", 1, 1)
    assert math.exp(same.certificate.log_bound) == pytest.approx(0.4)


def test_a_group_sees_more_tokens_than_its_size() -> None:
    first = {2: 0.5, 3: 0.3, 4: 0.15, 5: 0.05}
    model = Fixed({(): first} | {(token,): {EOS: 1.0} for token in first})
    stepper = TableStepper(7)
    stepper._calls = 1  # the first step returns all tokens, of which a search takes the largest
    result = diverse_search(stepper, [model], SearchConfig(3, 3), Diversity(3, 9.0))[0]
    assert [h.tokens for h in result.hypotheses] == [(2,), (3,), (4,)]
    assert math.exp(result.certificate.log_bound) == pytest.approx(0.05)


def test_a_hypothesis_behind_a_gap_is_not_proven() -> None:
    """The first group finds the two best, of which only one is listed."""
    model = Fixed({(): {2: 0.8, 3: 0.2}, (2,): {EOS: 0.6, 4: 0.4}, (2, 4): {EOS: 1.0}} | {
        (3,): {EOS: 1.0}
    })  # fmt: skip
    config = SearchConfig(2, 2)
    result = diverse_search(TableStepper(7), [model], config, Diversity(2, 2.0))[0]
    assert [h.tokens for h in result.hypotheses] == [(2,), (3,)]
    assert (result.finished, result.certificate.level) == (3, "exhaustive")
    assert result.certificate.proven == 1


def test_a_forced_prefix_is_kept() -> None:
    for seed in range(10):
        config = SearchConfig(4, 4, 4)
        tables = [Table(seed + i, 1.5) for i in range(2)]
        forced = [(2, 3), (4,)]
        results = diverse_search(TableStepper(), tables, config, Diversity(2), forced)
        for prefix, result in zip(forced, results, strict=True):
            assert all(h.tokens[: len(prefix)] == prefix for h in result.hypotheses)


@pytest.mark.parametrize(
    ("config", "groups", "message"),
    [
        (SearchConfig(5), 2, "beam_size 5 is no multiple of 2 groups"),
        (SearchConfig(4, 5), 2, "n_best must be 1 to that"),
        (SearchConfig(4, 0), 2, "n_best must be 1 to that"),
        (SearchConfig(4, stop="first"), 2, "without groups"),
    ],
)
def test_what_groups_cannot_do(config: SearchConfig, groups: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchTask(config, diversity=Diversity(groups))
    with pytest.raises(ValueError, match=message):
        diverse_search(TableStepper(), [Table(0, 1.5)], config, Diversity(groups))
    with pytest.raises(ValueError, match="goes with a beam search"):
        SearchTask(SearchConfig(4), mbr="chrf", diversity=Diversity(2))
    for wrong in ((1, 0.5), (2, -1.0), (2, math.nan)):
        with pytest.raises(ValueError, match="must be"):
            Diversity(*wrong)
