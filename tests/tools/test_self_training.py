"""`tools/self_training.py`: what is asked, what is kept, and bad input."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
import self_training
from hypothesis import given
from hypothesis import strategies as st
from self_training import Question, new_questions, read_questions, sure_answers

from onmt_entmax.text.morphology import decode_source
from tests.commands import run, succeed

TAGS = st.sampled_from([("V", "PST"), ("V", "PRS"), ("N", "SG"), ("N", "PL"), ("N",)])
QUESTION = st.builds(Question, TAGS, st.text("ab", min_size=1, max_size=2))


def combinations(known: list[Question]) -> set[Question]:
    """Every question that may be asked, by its definition."""
    return {
        Question(one.tags, other.lemma)
        for one in known
        for other in known
        if one.tags[0] == other.tags[0]
    } - set(known)


@given(st.lists(QUESTION, min_size=1, max_size=8), st.integers(1, 12), st.integers(0, 99))
def test_questions_are_new_combinations(known, count, seed) -> None:
    made = new_questions(known, count, random.Random(seed))
    assert len(made) == len(set(made)) <= count
    assert set(made) <= combinations(known)
    assert made == new_questions(known, count, random.Random(seed))


def test_all_combinations_are_found_in_the_end() -> None:
    known = [Question(("V", tag), lemma) for tag, lemma in zip("abc", "xyz", strict=True)]
    assert set(new_questions(known, 6, random.Random(1))) == combinations(known)


def test_tags_are_drawn_as_often_as_training_has_them() -> None:
    tags = {"many": 600, "some": 300, "few": 100}
    known = [Question(("V", tag), f"{tag}{i}") for tag, count in tags.items() for i in range(count)]
    drawn = new_questions(known, 200, random.Random(1))
    found = Counter(question.tags[1] for question in drawn)
    # Of 1,000 lemmas, those that training has with a tag are not asked with it.
    fresh = {tag: count * (1000 - count) for tag, count in tags.items()}
    for tag, part in fresh.items():
        assert found[tag] / 200 == pytest.approx(part / sum(fresh.values()), abs=0.1)


def test_a_question_in_both_orders_is_one(tmp_path: Path) -> None:
    path = tmp_path / "train.src"
    path.write_text("lang=x +V a\nlang=x order=reversed +V a\nlang=y order=reversed +N b\n")
    assert read_questions(path) == {"x": [Question(("V",), "a")]}


def record(source: str, certificate: str, *hypotheses: tuple[str, float]) -> str:
    listed = [{"text": text, "prob": prob} for text, prob in hypotheses]
    numbers = {"id": 0, "bound": 0.0, "mass": 1.0, "finished": len(listed)}
    return json.dumps(
        {"source": source, "certificate": certificate, **numbers, "hypotheses": listed}
    )


def test_answers_that_are_sure(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    lines = [
        record("lang=x +V a", "exhaustive", ("b", 1.0)),
        record("lang=x +V c", "optimal", ("d", 0.75), ("e", 0.2)),
        record("lang=x +V f", "optimal", ("g", 0.5)),
        record("lang=x +V h", "none", ("i", 0.9)),
        record("lang=x +V j", "exhaustive"),
        record("lang=x +V k", "exhaustive", ("<unk> k", 1.0)),
        record("lang=x +V l", "exhaustive", ("l <copy2>", 1.0)),
    ]
    report.write_text("\n".join(lines) + "\n")
    assert list(sure_answers(report, 0.75)) == [("lang=x +V a", "b"), ("lang=x +V c", "d")]
    assert list(sure_answers(report, 0.76)) == [("lang=x +V a", "b")]
    assert list(sure_answers(report, 0.5, 0.75)) == [("lang=x +V c", "d"), ("lang=x +V f", "g")]
    assert list(sure_answers(report, 0.5, 0.74)) == [("lang=x +V f", "g")]


def test_answers_are_drawn_by_their_probabilities(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    line = record("lang=x +V a", "optimal", ("b", 0.5), ("c", 0.3), ("<unk>", 0.2))
    sure = record("lang=x +V d", "exhaustive", ("e", 1.0))
    report.write_text((line + "\n") * 2000 + sure + "\n")
    drawn = Counter(text for _, text in sure_answers(report, 0.4, 1.0, random.Random(1)))
    assert set(drawn) == {"b", "c", "e"}  # what has no name is left out when it is drawn
    assert drawn["b"] / 2000 == pytest.approx(0.5, abs=0.05)
    assert drawn["c"] / 2000 == pytest.approx(0.3, abs=0.05)
    assert drawn["e"] == 1
    written = []
    for more in ([], ["--draw"], ["--draw"], ["--draw", "--seed", "2"]):
        out = tmp_path / "out"
        given = ["keep", "--report", str(report), "--prob", "0.4", "--out", str(out), *more]
        assert self_training.main(given) == 0
        written.append((tmp_path / "out.tgt").read_text())
    assert "c" not in written[0]
    assert written[0] != written[1] == written[2] != written[3]


def test_answers_for_the_other_order_and_of_middling_sureness(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    lines = [("lang=x +V a", "a b c", 0.5), ("lang=x +V d", "d", 1.0), ("lang=x +V e", "e", 0.2)]
    report.write_text(
        "".join(record(source, "optimal", (text, prob)) + "\n" for source, text, prob in lines)
    )
    given = ["keep", "--report", report, "--prob", "0.3", "--at-most", "0.9", "--reverse"]
    assert self_training.main([*map(str, given), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out.src").read_text() == "lang=x +V a\n"
    assert (tmp_path / "out.tgt").read_text() == "c b a\n"


def test_the_commands(tmp_path: Path) -> None:
    """From training pairs to questions; from answers, here by hand, to training pairs."""
    train, asked = tmp_path / "train.src", tmp_path / "new" / "asked.src"
    train.write_text("lang=x +V +PST a b\nlang=x +V +PRS c ▁ d\nlang=y +N e\nlang=x +N f\n")
    printed = succeed("tools/self_training.py", "ask", "--train", train, "--out", asked)
    assert "2 questions" in printed
    questions = asked.read_text().splitlines()
    assert set(questions) == {"lang=x +V +PRS a b", "lang=x +V +PST c ▁ d"}
    assert {decode_source(line.split()) for line in questions} == {
        ("x", ("V", "PRS"), "ab"),
        ("x", ("V", "PST"), "c d"),
    }
    report = tmp_path / "report.jsonl"
    report.write_text("".join(record(q, "optimal", (q[-1], 0.95)) + "\n" for q in questions))
    out = tmp_path / "data.v1" / "answered"
    printed = succeed("tools/self_training.py", "keep", "--report", report, "--out", out)
    assert "2 pairs" in printed
    sources, targets = (
        out.with_name(f"answered.{suffix}").read_text().splitlines() for suffix in ("src", "tgt")
    )
    assert sorted(sources) == sorted(questions)
    assert targets == [source[-1] for source in sources]


def test_as_many_questions_as_are_asked_for(tmp_path: Path, capsys) -> None:
    train, out = tmp_path / "train.src", tmp_path / "asked.src"
    train.write_text("".join(f"lang=x +V +{n} {lemma}\n" for n, lemma in enumerate("abcdef")))
    for each in (1, 3):
        given = ["ask", "--train", str(train), "--each", str(each), "--out", str(out)]
        assert self_training.main(given) == 0
        assert f"{6 * each} questions" in capsys.readouterr().out
        assert len(set(out.read_text().splitlines())) == 6 * each


def test_answers_are_in_random_order_and_stay_pairs(tmp_path: Path) -> None:
    report, orders = tmp_path / "report.jsonl", []
    asked = [f"lang={language} +V {lemma}" for language in "xy" for lemma in "abcdefgh"]
    report.write_text("".join(record(q, "optimal", (q[-1], 0.95)) + "\n" for q in asked))
    for seed in ("1", "1", "2"):
        given = ["keep", "--report", str(report), "--out", str(tmp_path / "out"), "--seed", seed]
        assert self_training.main(given) == 0
        orders.append((tmp_path / "out.src").read_text().splitlines())
        targets = (tmp_path / "out.tgt").read_text().splitlines()
        assert targets == [source[-1] for source in orders[-1]]
        assert sorted(orders[-1]) == asked != orders[-1]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("lang=x +V a\n", ["ask", "--each", 0], "--each must be at least 1"),
        ("lang=x +V a\n", ["ask"], "no lemma that could be asked for"),
        ("draw V;PST\n", ["ask"], "given:1: expected a language first"),
        ("{}\n", ["keep"], "given:1: not a record of an -exactness_report"),
        (record("lang=x a", "optimal", ("b", 0.5)) + "\n", ["keep"], "no answer that is proven"),
        ("", ["keep", "--prob", 1.5], "--prob must be above 0"),
        ("", ["keep", "--at-most", 0.5], "--at-most must be at least --prob (0.9)"),
        ("", ["keep", "--at-most", 1.5], "at most 1, not 1.5"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, content: str, arguments: list, message: str
) -> None:
    given_file, out = tmp_path / "given", tmp_path / "out"
    given_file.write_text(content)
    option = "--train" if arguments[0] == "ask" else "--report"
    done = run("tools/self_training.py", *arguments, option, given_file, "--out", out)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [given_file]
