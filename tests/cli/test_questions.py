"""`onmt-entmax distill`: the queries, and the pairs that are kept."""

import random
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import distill
from onmt_entmax.cli.distill import new_queries, pseudo_labels
from onmt_entmax.strings.task import INFLECTION, Query
from tests.reports import record

TAGS = st.sampled_from([("V", "PST"), ("V", "PRS"), ("N", "SG"), ("N", "PL"), ("N",)])
QUESTION = st.builds(Query, st.text("ab", min_size=1, max_size=2), TAGS)


def combinations(known: list[Query]) -> set[Query]:
    """Every question that may be asked, by its definition."""
    return {
        Query(other.source, one.tags)
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


def test_tags_are_drawn_as_often_as_training_has_them() -> None:
    tags = {"many": 600, "some": 300, "few": 100}
    known = [Query(f"{tag}{i}", ("V", tag)) for tag, count in tags.items() for i in range(count)]
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
    chosen = {"prob": 0.3, "at_most": 1.0, "seed": 1, "draw": False}
    distill.keep(report, Namespace(out=out, **{**chosen, **options}))
    sides = (
        out.with_name(f"{out.name}.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    return list(zip(*sides, strict=True))


def ask(train: Path, out: Path, each: int = 2) -> list[str]:
    """The questions that `distill` writes."""
    distill.write_queries(Namespace(train=train, each=each, seed=1), out)
    return out.read_text().splitlines()


def test_questions_of_a_file(tmp_path: Path) -> None:
    train, out = tmp_path / "train.src", tmp_path / "new" / "asked.src"
    train.write_text("lang=x +V +PST a b\nlang=x +V +PRS c ▁ d\nlang=y +N e\nlang=x +N f\n")
    questions = ask(train, out)
    assert set(questions) == {"lang=x +V +PRS a b", "lang=x +V +PST c ▁ d"}
    assert {INFLECTION.decode_source(line.split()) for line in questions} == {
        Query("ab", ("V", "PRS"), "x"),
        Query("c d", ("V", "PST"), "x"),
    }
    train.write_text("".join(f"lang=x +V +{n} {lemma}\n" for n, lemma in enumerate("abcdef")))
    for each in (1, 3):
        assert len(set(ask(train, out, each))) == 6 * each
