"""`onmt-entmax distill`: the new queries, and the pairs that are kept."""

import random
from argparse import Namespace
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import distill
from onmt_entmax.cli.new_queries import new_queries
from onmt_entmax.cli.pseudo_labels import best_text, certified_records, drawn_text, pseudo_labels
from onmt_entmax.strings.task import INFLECTION, Query
from tests.reports import record

# --- queries ---

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


@given(QUERIES, st.integers(1, 12), st.integers(0, 99))
def test_queries_are_different_new_combinations(
    training: list[Query], count: int, seed: int
) -> None:
    queries = new_queries(training, count, random.Random(seed))
    assert len(queries) == len(set(queries)) <= count
    assert set(queries) <= new_combinations(training)


@given(QUERIES, st.integers(1, 12), st.integers(0, 99))
def test_the_seed_determines_the_queries(training: list[Query], count: int, seed: int) -> None:
    first, second = (new_queries(training, count, random.Random(seed)) for _ in range(2))
    assert first == second


def test_tags_are_drawn_as_often_as_training_has_them() -> None:
    """The more lemmas have a tag, the likelier it is; and the more do not, the more can get it."""
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
    distill.write_queries(Namespace(train=train, each=each, seed=1), out)
    return out.read_text().splitlines()


def test_queries_of_a_file_stay_in_their_language(tmp_path: Path) -> None:
    """They have tags of their part of speech."""
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


# --- pairs ---


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Records with a certain, a likely and an unlikely output, and three that make no pair.

    One of these is without proof, one has no output, and one has an unknown symbol.
    """
    lines = [
        record("lang=x +V a", "exhaustive", ("b", 1.0)),
        record("lang=x +V c", "optimal", ("d", 0.75), ("e", 0.2)),
        record("lang=x +V f", "optimal", ("g", 0.5)),
        record("lang=x +V h", "none", ("i", 0.9)),
        record("lang=x +V j", "exhaustive"),
        record("lang=x +V k", "exhaustive", ("<unk> k", 1.0)),
    ]
    path = tmp_path / "report.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


# Pairs of source and output.
CERTAIN = ("lang=x +V a", "b")
LIKELY = ("lang=x +V c", "d")
UNLIKELY = ("lang=x +V f", "g")


@pytest.mark.parametrize(
    ("least", "most", "pairs"),
    [
        pytest.param(0.75, 1.0, [CERTAIN, LIKELY], id="at the least probability"),
        pytest.param(0.76, 1.0, [CERTAIN], id="below the least"),
        pytest.param(0.5, 0.75, [LIKELY, UNLIKELY], id="at the most probability"),
        pytest.param(0.5, 0.74, [UNLIKELY], id="above the most"),
    ],
)
def test_proven_outputs_between_two_probabilities_are_kept(
    report: Path, least: float, most: float, pairs: list[tuple[str, str]]
) -> None:
    assert list(pseudo_labels(certified_records(report, least, most), best_text)) == pairs


DRAWS = 2000


def drawn(report: Path, *outputs: tuple[str, float]) -> Counter[str]:
    """Return how often each text is drawn, in `DRAWS` queries that all have these outputs."""
    report.write_text(f"{record('lang=x +V a', 'optimal', *outputs)}\n" * DRAWS)
    draw = partial(drawn_text, generator=random.Random(1))
    return Counter(text for _, text in pseudo_labels(certified_records(report, 0.4, 1.0), draw))


def test_outputs_are_drawn_by_their_probabilities(tmp_path: Path) -> None:
    counts = drawn(tmp_path / "report.jsonl", ("b", 0.5), ("c", 0.3), ("d", 0.2))
    shares = {text: count / DRAWS for text, count in counts.items()}
    # The seed is fixed; four standard deviations of such shares are below 0.05.
    assert shares == pytest.approx({"b": 0.5, "c": 0.3, "d": 0.2}, abs=0.05)


def test_a_query_whose_draw_has_an_unknown_symbol_is_left_out(tmp_path: Path) -> None:
    counts = drawn(tmp_path / "report.jsonl", ("b", 0.5), ("<unk>", 0.5))
    assert set(counts) == {"b"}
    assert counts["b"] / DRAWS == pytest.approx(0.5, abs=0.05)
