"""`tools/words/hallucinate.py` and the files that `tools/sigmorphon.py prepare` makes of it."""

import random
from itertools import pairwise, product
from pathlib import Path

import pytest
import sigmorphon
from hypothesis import given
from hypothesis import strategies as st
from words.hallucinate import STEM, Row, align, alphabet, copies, hallucinate, replace_stems, stems

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples"
WORD = st.text("abc ", min_size=1, max_size=9)


def distance(a: str, b: str) -> int:
    """Edit distance, the plain recursion over rows."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


@given(WORD, WORD)
def test_an_alignment_is_one_of_fewest_edits(lemma: str, form: str) -> None:
    pairs = align(lemma, form)
    assert all(lemma[i] == form[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    # Between two kept pairs, the longer rest is what it costs to edit one to the other.
    ends = [(-1, -1), *pairs, (len(lemma), len(form))]
    cost = sum(max(k - i, m - j) - 1 for (i, j), (k, m) in pairwise(ends))
    assert cost == distance(lemma, form)


@given(st.text("ab", max_size=4), st.text("ab", max_size=4))
def test_no_other_of_fewest_edits_keeps_more(lemma: str, form: str) -> None:
    best = distance(lemma, form)
    most = 0
    for keep in product([None, *range(len(form))], repeat=len(lemma)):
        pairs = [(i, j) for i, j in enumerate(keep) if j is not None and lemma[i] == form[j]]
        if any(j >= m for (_, j), (_, m) in pairwise(pairs)):
            continue
        ends = [(-1, -1), *pairs, (len(lemma), len(form))]
        if sum(max(k - i, m - j) - 1 for (i, j), (k, m) in pairwise(ends)) == best:
            most = max(most, len(pairs))
    assert len(align(lemma, form)) == most


@pytest.mark.parametrize(
    ("lemma", "form", "regions"),
    [
        ("walk", "walked", ["walk"]),
        ("draw", "drew", []),  # dr and w
        ("schreiben", "geschrieben", ["schr", "ben"]),
        ("sing", "sang", []),
        ("give up", "giving up", ["giv", " up"]),
        ("abcd", "xxabcdxx", ["abcd"]),
        ("ab", "ab", []),
    ],
)
def test_stems(lemma: str, form: str, regions: list[str]) -> None:
    found = stems(lemma, form)
    assert [lemma[s.lemma : s.lemma + s.length] for s in found] == regions
    assert [form[s.form : s.form + s.length] for s in found] == regions


@given(WORD, WORD, st.integers(0, 1000))
def test_only_the_inside_of_stems_changes_and_alike(lemma: str, form: str, seed: int) -> None:
    row = Row(lemma, form, ("V",))
    made = replace_stems(row, ["X", "Y"], random.Random(seed))
    found = stems(lemma, form)
    inside = {(s.lemma + i, s.form + i) for s in found for i in s.inside()}
    assert len(inside) == sum(s.length - 2 for s in found)
    assert all(s.length >= STEM for s in found)
    assert made.tags == row.tags
    assert (len(made.lemma), len(made.form)) == (len(lemma), len(form))
    for i, j in inside:
        assert made.lemma[i] == made.form[j]
        assert made.lemma[i] in ("X", "Y") or (made.lemma[i] == lemma[i] == " ")
    places = {i for i, _ in inside}
    assert all(
        a == b for i, (a, b) in enumerate(zip(made.lemma, lemma, strict=True)) if i not in places
    )
    places = {j for _, j in inside}
    assert all(
        a == b for j, (a, b) in enumerate(zip(made.form, form, strict=True)) if j not in places
    )


ROWS = [
    Row("walk", "walked", ("V", "PST")),
    Row("drift", "drifted", ("V", "PST")),
    Row("go", "went", ("V", "PST")),
    Row("ice cream", "ice creams", ("N", "PL")),
]


def test_the_alphabet_is_what_stands_inside_stems() -> None:
    assert alphabet(ROWS) == sorted(set("alrifcecrea"))


def test_hallucinated_rows_are_new_and_distinct_and_repeat() -> None:
    made = hallucinate(ROWS, 60, random.Random(3))
    assert made == hallucinate(ROWS, 60, random.Random(3))
    assert made != hallucinate(ROWS, 60, random.Random(4))
    assert len({(row.lemma, row.tags) for row in made}) == len(made) == 60
    assert not {(row.lemma, row.tags) for row in made} & {(row.lemma, row.tags) for row in ROWS}
    verbs = [row for row in made if row.tags == ("V", "PST")]
    nouns = [row for row in made if row.tags == ("N", "PL")]
    assert verbs
    assert nouns
    assert all(row.form == row.lemma + "ed" for row in verbs)
    assert all(row.form == row.lemma + "s" and row.lemma[3] == " " for row in nouns)
    assert not any("w" in row.lemma[1:] for row in verbs)  # no w inside a stem of the language


def test_a_language_without_stems_gives_none_and_a_small_one_what_it_has() -> None:
    assert hallucinate([Row("go", "went", ("V",))], 5, random.Random(1)) == []
    few = hallucinate(
        [Row("aba", "abas", ("N",)), Row("aca", "acas", ("N",))], 50, random.Random(1)
    )
    assert few == []  # b and c in the middle are what the language has
    assert len(hallucinate([Row("abca", "abcas", ("N",))], 50, random.Random(1))) == 3


def test_every_lemma_is_copied_once() -> None:
    rows = copies([*ROWS, Row("walk", "walks", ("V", "3"))])
    assert [row.lemma for row in rows] == ["walk", "drift", "go", "ice cream"]
    assert all(row.form == row.lemma and row.tags == ("COPY",) for row in rows)


def prepare(out: Path, *arguments: object) -> None:
    given = ["prepare", "--data", SAMPLES, "--out", out, *arguments]
    assert sigmorphon.main(list(map(str, given))) == 0


def test_prepare_writes_files_of_their_own(tmp_path: Path, capsys) -> None:
    prepare(tmp_path / "plain")
    plain = capsys.readouterr().out
    prepare(tmp_path / "more", "--hallucinate", 40, "--copy-lemmas")
    printed = capsys.readouterr().out
    assert "hallucinated.{src,tgt}: 160 rows, 4 languages" in printed
    assert printed.count("\n") == plain.count("\n") + 2
    for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "more" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "more").iterdir()) == sorted(
        f"{name}.{side}"
        for name in ("train", "dev", "hallucinated", "copies")
        for side in ("src", "tgt")
    )
    sources = (tmp_path / "more" / "hallucinated.src").read_text(encoding="utf-8").splitlines()
    training = set((tmp_path / "more" / "train.src").read_text(encoding="utf-8").splitlines())
    known = {token for line in training for token in line.split()}
    assert len(set(sources) - training) == 160
    assert {token for line in sources for token in line.split()} <= known
    # A language gets the same rows whatever others there are; another seed gives others.
    prepare(tmp_path / "one", "--languages", "german", "--hallucinate", 40)
    prepare(tmp_path / "other", "--languages", "german", "--hallucinate", 40, "--seed", 2)
    german = [line for line in sources if line.startswith("lang=german ")]
    for name, same in (("one", True), ("other", False)):
        text = (tmp_path / name / "hallucinated.src").read_text(encoding="utf-8")
        assert (sorted(text.splitlines()) == sorted(german)) == same
    for source, target in zip(
        (tmp_path / "more" / "copies.src").read_text(encoding="utf-8").splitlines(),
        (tmp_path / "more" / "copies.tgt").read_text(encoding="utf-8").splitlines(),
        strict=True,
    ):
        assert source.split(" ", 2)[1:] == ["+COPY", target]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hallucinate", -1), "--hallucinate must not be negative"),
        (("--copy-lemmas", "--splits", "dev"), "need train among the splits"),
    ],
)
def test_bad_requests(tmp_path: Path, capsys, arguments: tuple, message: str) -> None:
    given = ["prepare", "--data", SAMPLES, "--out", tmp_path, *arguments]
    assert sigmorphon.main(list(map(str, given))) == 2
    assert message in capsys.readouterr().err
