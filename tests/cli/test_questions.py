"""`onmt-entmax distill`: the queries, and the pairs that are kept."""

import random
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import distill
from onmt_entmax.cli.distill import Query, new_queries, pseudo_labels
from onmt_entmax.data.inflection import decode_source
from onmt_entmax.errors import UserError
from tests.reports import record

TAGS = st.sampled_from([("V", "PST"), ("V", "PRS"), ("N", "SG"), ("N", "PL"), ("N",)])
QUESTION = st.builds(Query, TAGS, st.text("ab", min_size=1, max_size=2))


def combinations(known: list[Query]) -> set[Query]:
    """Every question that may be asked, by its definition."""
    return {
        Query(one.tags, other.lemma)
        for one in known
        for other in known
        if one.tags[0] == other.tags[0]
    } - set(known)


@given(st.lists(QUESTION, min_size=1, max_size=8), st.integers(1, 12), st.integers(0, 99))
def test_questions_are_new_combinations(known, count, seed) -> None:
    made = new_queries(known, count, random.Random(seed))
    assert len(made) == len(set(made)) <= count
    assert set(made) <= combinations(known)
    assert made == new_queries(known, count, random.Random(seed))


def test_all_combinations_are_found_in_the_end() -> None:
    known = [Query(("V", tag), lemma) for tag, lemma in zip("abc", "xyz", strict=True)]
    assert set(new_queries(known, 6, random.Random(1))) == combinations(known)


def test_tags_are_drawn_as_often_as_training_has_them() -> None:
    tags = {"many": 600, "some": 300, "few": 100}
    known = [Query(("V", tag), f"{tag}{i}") for tag, count in tags.items() for i in range(count)]
    drawn = new_queries(known, 200, random.Random(1))
    found = Counter(question.tags[1] for question in drawn)
    # Of 1,000 lemmas, those that training has with a tag are not asked with it.
    fresh = {tag: count * (1000 - count) for tag, count in tags.items()}
    for tag, part in fresh.items():
        assert found[tag] / 200 == pytest.approx(part / sum(fresh.values()), abs=0.1)


def test_answers_that_are_sure(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    lines = [
        record("lang=x +V a", "exhaustive", ("b", 1.0)),
        record("lang=x +V c", "optimal", ("d", 0.75), ("e", 0.2)),
        record("lang=x +V f", "optimal", ("g", 0.5)),
        record("lang=x +V h", "none", ("i", 0.9)),
        record("lang=x +V j", "exhaustive"),
        record("lang=x +V k", "exhaustive", ("<unk> k", 1.0)),
    ]
    report.write_text("\n".join(lines) + "\n")
    assert list(pseudo_labels(report, 0.75)) == [("lang=x +V a", "b"), ("lang=x +V c", "d")]
    assert list(pseudo_labels(report, 0.76)) == [("lang=x +V a", "b")]
    assert list(pseudo_labels(report, 0.5, 0.75)) == [("lang=x +V c", "d"), ("lang=x +V f", "g")]
    assert list(pseudo_labels(report, 0.5, 0.74)) == [("lang=x +V f", "g")]


def test_answers_are_drawn_by_their_probabilities(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    line = record("lang=x +V a", "optimal", ("b", 0.5), ("c", 0.3), ("<unk>", 0.2))
    sure = record("lang=x +V d", "exhaustive", ("e", 1.0))
    report.write_text((line + "\n") * 2000 + sure + "\n")
    drawn = Counter(text for _, text in pseudo_labels(report, 0.4, 1.0, random.Random(1)))
    assert set(drawn) == {"b", "c", "e"}  # what has no name is left out when it is drawn
    assert drawn["b"] / 2000 == pytest.approx(0.5, abs=0.05)
    assert drawn["c"] / 2000 == pytest.approx(0.3, abs=0.05)
    assert drawn["e"] == 1


def keep(report: Path, out: Path, **options: object) -> list[tuple[str, str]]:
    """The pairs that `distill` writes."""
    chosen = {"prob": 0.3, "at_most": 1.0, "seed": 1, "draw": False, "reverse": False}
    distill.keep(report, Namespace(out=out, **{**chosen, **options}))
    sides = (
        out.with_name(f"{out.name}.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    return list(zip(*sides, strict=True))


def test_drawn_pairs_are_those_of_the_seed(tmp_path: Path) -> None:
    report, out = tmp_path / "report.jsonl", tmp_path / "out"
    report.write_text((record("lang=x +V a", "optimal", ("b", 0.6), ("c", 0.4)) + "\n") * 200)
    best, *drawn = (
        keep(report, out, draw=draw, seed=seed)
        for draw, seed in ((False, 1), (True, 1), (True, 1), (True, 2))
    )
    assert {target for _, target in best} == {"b"}
    assert best != drawn[0] == drawn[1] != drawn[2]


def test_answers_for_the_other_order_and_of_middling_sureness(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    lines = [("lang=x +V a", "a b c", 0.5), ("lang=x +V d", "d", 1.0), ("lang=x +V e", "e", 0.2)]
    report.write_text(
        "".join(record(source, "optimal", (text, prob)) + "\n" for source, text, prob in lines)
    )
    pairs = keep(report, tmp_path / "data.v1" / "out", at_most=0.9, reverse=True)
    assert pairs == [("lang=x +V a", "c b a")]
    with pytest.raises(UserError, match="no certified prediction has a probability of"):
        keep(report, tmp_path / "none", prob=0.6, at_most=0.9)
    assert not list(tmp_path.glob("none*"))


def test_answers_are_in_random_order_and_stay_pairs(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    asked = [f"lang={language} +V {lemma}" for language in "xy" for lemma in "abcdefgh"]
    report.write_text("".join(record(q, "optimal", (q[-1], 0.95)) + "\n" for q in asked))
    orders = [keep(report, tmp_path / "out", seed=seed) for seed in (1, 1, 2)]
    for pairs in orders:
        assert all(target == source[-1] for source, target in pairs)
        sources = [source for source, _ in pairs]
        assert sorted(sources) == asked != sources
    assert orders[0] == orders[1] != orders[2]


def ask(train: Path, out: Path, each: int = 2) -> list[str]:
    """The questions that `distill` writes."""
    distill.write_queries(Namespace(train=train, each=each, seed=1), out)
    return out.read_text().splitlines()


def test_questions_of_a_file(tmp_path: Path) -> None:
    train, out = tmp_path / "train.src", tmp_path / "new" / "asked.src"
    train.write_text("lang=x +V +PST a b\nlang=x +V +PRS c ▁ d\nlang=y +N e\nlang=x +N f\n")
    questions = ask(train, out)
    assert set(questions) == {"lang=x +V +PRS a b", "lang=x +V +PST c ▁ d"}
    assert {decode_source(line.split()) for line in questions} == {
        ("x", ("V", "PRS"), "ab"),
        ("x", ("V", "PST"), "c d"),
    }
    train.write_text("".join(f"lang=x +V +{n} {lemma}\n" for n, lemma in enumerate("abcdef")))
    for each in (1, 3):
        assert len(set(ask(train, out, each))) == 6 * each


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("lang=x +V a\n", "no lemma can be combined"),
        ("draw V;PST\n", "train.src:1: expected a language first"),
    ],
)
def test_nothing_to_ask(tmp_path: Path, content: str, message: str) -> None:
    train = tmp_path / "train.src"
    train.write_text(content)
    with pytest.raises(UserError, match=message):
        ask(train, tmp_path / "asked.src")
    assert list(tmp_path.iterdir()) == [train]
