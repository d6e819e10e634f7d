"""Certificates under constraints and penalties, against enumeration."""

import math
import random
from collections.abc import Sequence

import pytest
import torch

from onmt_entmax.search import Constraints, Penalties, SearchConfig, beam_search
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, enumerate_support
from tests.search.tables import EOS, Fixed, Table, TableStepper

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
    if complete and len(tokens) < max(wish.min_length, len(forced)) and len(tokens) >= len(forced):
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
        {s: p for s, p in support.strings.items() if is_allowed(s, wish, forced, True)},
        {s: p for s, p in support.prefixes.items() if is_allowed(s, wish, forced, False)},
        {(): 0.0},  # what was excluded is checked by its mass
    )


@pytest.mark.parametrize("forced", [(), (2,), (4, 4, 4)], ids=str)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_no_certified_answer_differs_from_enumeration(name: str, forced: tuple[int, ...]) -> None:
    levels = set()
    for seed in range(60):
        draw = random.Random(seed)
        table = Table(seed, draw.choice([1.0, 1.2, 1.5, 2.0]))
        config = SearchConfig(
            draw.randint(1, 10),
            draw.choice([0, 1, 3]),
            4,
            draw.choice(["exhaustive", "optimal", "first"]),
            CONSTRAINTS[name],
        )
        support = enumerate_support(TableStepper(), [table], 4, 1000)
        result = beam_search(TableStepper(), [table], config, [forced])[0]
        asked = allowed_part(support, CONSTRAINTS[name], forced)
        others = [p for s, p in support.strings.items() if s not in asked.strings]
        most = max([*others, *support.excluded.values()], default=-math.inf)
        check(result, asked, config, ruled_out=most)
        levels.add(result.certificate.level)
    assert len(levels) > 1


def score(penalties: Penalties, tokens: tuple[int, ...], log_prob: float) -> float:
    """Return OpenNMT-py's score; attention is that of `TableStepper`."""
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


@pytest.mark.parametrize(
    "penalties",
    [
        Penalties("wu", 0.8),
        Penalties("avg"),
        Penalties(coverage_penalty="summary", beta=0.01),
        Penalties("wu", 0.5, "wu", 0.1),
    ],
    ids=str,
)
@pytest.mark.parametrize("stop", ["exhaustive", "optimal", "first"])
def test_under_penalties_certificates_speak_of_scores(penalties: Penalties, stop: str) -> None:
    levels = set()
    for seed in range(80):
        draw = random.Random(seed)
        table = Table(seed, draw.choice([1.0, 1.5, 2.0]))
        stepper = TableStepper(attention=True)
        support = enumerate_support(stepper, [table], 4, 1000)
        scores = {s: score(penalties, s, p) for s, p in support.strings.items()}
        config = SearchConfig(draw.randint(1, 10), 2, 4, stop, penalties=penalties)  # type: ignore[arg-type]
        result = beam_search(stepper, [table], config)[0]
        levels.add(result.certificate.level)
        for hypothesis in result.hypotheses:
            assert hypothesis.score == pytest.approx(scores[hypothesis.tokens])
        found = [h.score for h in result.hypotheses]
        assert found == sorted(found, reverse=True)
        if result.certificate.level == "exhaustive":
            assert not support.prefixes
            assert result.finished == len(scores)
        proven = result.certificate.proven
        assert result.certificate.level != "none" or proven == 0
        assert found[:proven] == pytest.approx(sorted(scores.values(), reverse=True)[:proven])
    assert "exhaustive" in levels
    assert len(levels) > 1


def test_a_forced_prefix_that_the_model_excludes_has_no_continuation() -> None:
    table = Table(0, 2.0)
    first = table.log_probs(())
    impossible = next(token for token in range(2, 5) if first[token] == -math.inf)
    result = beam_search(TableStepper(), [table], SearchConfig(), [[impossible]])[0]
    assert result.best is None
    assert result.certificate.level == "exhaustive"
    assert result.certificate.excluded == pytest.approx(1)


def test_prefixes_of_some_sentences_do_not_touch_the_others() -> None:
    tables = [Table(seed, 1.0) for seed in range(6)]
    prefixes = [[2, 3], [], [4], [2], [3, 3, 3], []]
    config = SearchConfig(3, 2, 5)
    together = beam_search(TableStepper(), tables, config, prefixes)
    for table, prefix, result in zip(tables, prefixes, together, strict=True):
        assert result == beam_search(TableStepper(), [table], config, [prefix])[0]
        assert all(list(h.tokens[: len(prefix)]) == prefix for h in result.hypotheses)


def test_the_probability_of_banned_tokens_is_counted() -> None:
    table = Table(1, 1.0)
    config = SearchConfig(1000, 0, 3, constraints=Constraints(banned=frozenset({2})))
    stepper = TableStepper(excluded=())
    result = beam_search(stepper, [table], config)[0]
    support = enumerate_support(stepper, [table], 3, 1000)
    lost = sum(math.exp(p) for s, p in {**support.strings, **support.prefixes}.items() if 2 in s)
    assert result.certificate.excluded == pytest.approx(lost)
    assert result.certificate.log_excluded_bound == pytest.approx(table.log_probs(())[2])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Constraints, {"min_length": -1}),
        (Constraints, {"block_ngram_repeat": -1}),
        (Penalties, {"length_penalty": "gnmt"}),
        (Penalties, {"coverage_penalty": "sum"}),
        (Penalties, {"alpha": -0.5}),
        (Penalties, {"beta": float("nan")}),
    ],
)
def test_wrong_options_are_refused(kind: type, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**wrong)


def test_a_coverage_penalty_needs_attention() -> None:
    config = SearchConfig(penalties=Penalties(coverage_penalty="summary", beta=1.0))
    with pytest.raises(ValueError, match="attention"):
        beam_search(TableStepper(), [Table(0, 1.0)], config)


@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
def test_under_penalties_the_whole_beam_is_searched(stop: str) -> None:
    """(3, 4, 5) is less probable than (2,), but has the better average over tokens."""
    model = Fixed(
        {
            (): {2: 0.5, 3: 0.45, 4: 0.05},
            (2,): {EOS: 0.96, 4: 0.04},
            (2, 4): {EOS: 1.0},
            (3,): {4: 1.0},
            (3, 4): {5: 1.0},
            (3, 4, 5): {EOS: 1.0},
            (4,): {EOS: 1.0},
        }
    )
    config = SearchConfig(2, 1, 5, stop, penalties=Penalties("avg"))  # type: ignore[arg-type]
    assert beam_search(TableStepper(7), [model], config)[0].hypotheses[0].tokens == (3, 4, 5)


def test_stop_first_compares_scores() -> None:
    """The live prefix scores more than the empty output, which is finished first."""
    model = Fixed({(): {EOS: 0.4, 2: 0.6}, (2,): {EOS: 1.0}})
    config = SearchConfig(5, 1, stop="first", penalties=Penalties("avg"))
    assert beam_search(TableStepper(7), [model], config)[0].hypotheses[0].tokens == (2,)


@pytest.mark.parametrize("n_best", [1, 2])
def test_under_penalties_hypotheses_compete_by_score(n_best: int) -> None:
    """The empty output is the most probable one, but attends to nothing: its score is -inf."""
    after = {(2,): {EOS: 1.0}, (3,): {4: 1.0}, (3, 4): {EOS: 1.0}}
    model = Fixed({(): {EOS: 0.4, 2: 0.35, 3: 0.25}, **after})
    penalties = Penalties(coverage_penalty="wu", beta=1.0)
    config = SearchConfig(5, n_best, 5, "optimal", penalties=penalties)
    result = beam_search(TableStepper(7, attention=True), [model], config)[0]
    assert [each.tokens for each in result.hypotheses] == [(2,), (3, 4)][:n_best]
    assert result.hypotheses[0].score == pytest.approx(math.log(0.35))
    assert result.certificate.proven == n_best


def test_a_score_above_the_probability_ends_the_search() -> None:
    """The other outputs score at most log 0.1 / 5, between log 0.5 and log 0.5 / 2."""
    after = {(i,): {EOS: 1.0} for i in range(2, 7)}
    model = Fixed({(): {EOS: 0.5, **dict.fromkeys(range(2, 7), 0.1)}, **after})
    config = SearchConfig(5, 1, 3, "optimal", penalties=Penalties("avg"))
    result = beam_search(TableStepper(7), [model], config)[0]
    assert (result.rows, result.certificate.level) == (1, "optimal")
    assert result.hypotheses[0].score == pytest.approx(math.log(0.5) / 2)


def test_coverage_is_zero_where_everything_is_covered_once() -> None:
    attention = torch.eye(3)
    for name in ("wu", "summary"):
        penalties = Penalties(coverage_penalty=name, beta=2.0)  # type: ignore[arg-type]
        assert penalties.score(-1.0, 3, attention) == -1.0
    penalties = Penalties(coverage_penalty="wu", beta=1.0)
    assert penalties.score(-1.0, 3, attention[:2]) == -math.inf


@pytest.mark.parametrize(
    ("prefix", "repeats"),
    [((2, 3, 4, 2, 3), {4}), ((2, 3, 4, 2, 5), set()), ((5, 3, 4, 2, 3), set()), ((2, 3), set())],
)
def test_all_tokens_of_an_ngram_count(prefix: tuple[int, ...], repeats: set[int]) -> None:
    assert Constraints(block_ngram_repeat=3).forbidden(prefix, EOS) == repeats


def test_a_banned_token_must_be_in_the_vocabulary() -> None:
    config = SearchConfig(constraints=Constraints(banned=frozenset({5})))
    with pytest.raises(ValueError, match="not in the vocabulary"):
        beam_search(TableStepper(5), [Table(0, 1.0)], config)
