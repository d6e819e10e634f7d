"""`onmt-entmax distill`: the new queries, which combine sources and tags of training."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import distill
from onmt_entmax.cli.new_queries import new_queries
from onmt_entmax.strings.task import INFLECTION, Query

TAGS = st.sampled_from([("V", "PST"), ("V", "PRS"), ("N", "SG"), ("N", "PL"), ("N",)])
QUERIES = st.lists(
    st.builds(Query, st.text("ab", min_size=1, max_size=2), TAGS, st.just("x")),
    min_size=1,
    max_size=8,
)


def new_combinations(training: list[Query]) -> set[Query]:
    """Return every query that training lacks: a source with other tags of its part of speech."""
    combinations = {
        Query(one.source, other.tags, "x")
        for one in training
        for other in training
        if one.tags[0] == other.tags[0]
    }
    return combinations - set(training)


COUNTS, SEEDS = st.integers(1, 12), st.integers(0, 99)


@given(QUERIES, COUNTS, SEEDS)
def test_queries_are_new_combinations(training: list[Query], count: int, seed: int) -> None:
    queries = new_queries(training, count, random.Random(seed))
    assert set(queries) <= new_combinations(training)


@given(QUERIES, COUNTS, SEEDS)
def test_queries_are_different_and_no_more_than_asked_for(
    training: list[Query], count: int, seed: int
) -> None:
    """There are fewer if training has few combinations."""
    queries = new_queries(training, count, random.Random(seed))
    assert len(queries) == len(set(queries)) <= count


@given(QUERIES, COUNTS, SEEDS)
def test_the_seed_determines_the_queries(training: list[Query], count: int, seed: int) -> None:
    first, second = (new_queries(training, count, random.Random(seed)) for _ in range(2))
    assert first == second


def test_tags_are_drawn_as_often_as_training_has_them() -> None:
    """A tag is as likely as the number of lemmas that have it, times that of those that lack it."""
    counts = {"many": 600, "some": 300, "few": 100}
    training = [
        Query(f"{tag}{number}", ("V", tag))
        for tag, count in counts.items()
        for number in range(count)
    ]
    draws = 200
    queries = new_queries(training, draws, random.Random(1))
    drawn = Counter(query.tags[1] for query in queries)
    weights = {tag: count * (len(training) - count) for tag, count in counts.items()}
    for tag, weight in weights.items():
        # The seed is fixed; nearly three standard deviations of such a share are 0.1.
        assert drawn[tag] / draws == pytest.approx(weight / sum(weights.values()), abs=0.1)


def write_queries(train: Path, out: Path, each: int = 2) -> list[str]:
    """Return the lines of queries that the command writes."""
    distill.write_queries(train, out, each=each, seed=1)
    return out.read_text().splitlines()


def test_queries_of_a_file_stay_in_their_language(tmp_path: Path) -> None:
    """Their tags are those of other lemmas of this language and part of speech."""
    train = tmp_path / "train.src"
    sources = ["lang=x +V +PST a b", "lang=x +V +PRS c ▁ d", "lang=y +N e", "lang=x +N f"]
    train.write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
    lines = write_queries(train, tmp_path / "new" / "queries.src")
    assert set(lines) == {"lang=x +V +PRS a b", "lang=x +V +PST c ▁ d"}
    assert {INFLECTION.decode_source(line.split()) for line in lines} == {
        Query("ab", ("V", "PRS"), "x"),
        Query("c d", ("V", "PST"), "x"),
    }


@pytest.mark.parametrize("each", [1, 3])
def test_a_source_gets_as_many_queries_as_asked_for(tmp_path: Path, each: int) -> None:
    train = tmp_path / "train.src"
    train.write_text("".join(f"lang=x +V +{n} {lemma}\n" for n, lemma in enumerate("abcdef")))
    assert len(set(write_queries(train, tmp_path / "queries.src", each))) == 6 * each
