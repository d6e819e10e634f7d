"""Parallel text: normalisation, development sets held out, subwords."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.parallel import hold_out, normalise
from onmt_entmax.data.subword_learning import Segmenter, Subwords
from onmt_entmax.errors import UserError


@pytest.mark.parametrize(
    ("line", "language", "tokens", "expected"),
    [
        pytest.param("  a\u00a0b \t c\u200b ", "en", False, "a b c", id="spaces"),
        pytest.param("u\u0308ber", "de", False, "über", id="decomposed letters"),
        pytest.param(
            "it &apos;s &quot; &amp;amp; &quot;", "en", True, 'it \'s " &amp; "', id="escapes"
        ),
        pytest.param("it &apos;s", "en", False, "it &apos;s", id="escapes in raw text"),
        pytest.param(
            "Ştiinţă Țară şi când în", "ro", False, "Stiinta Tara si cand in", id="Romanian"
        ),
        pytest.param("（全角）", "ja", False, "（全角）", id="full width"),
        pytest.param(
            "k\x96l\x85m ￭￨▁ ｟５０％｠", "ja", False, "k l m ■│_ ⦅５０％⦆", id="subword marks"
        ),
    ],
)
def test_normalise(line: str, language: str, tokens: bool, expected: str) -> None:
    assert normalise(line, language, tokens) == expected


# Many pairs share a sentence on one side; one pair has an empty side.
PAIRS = [(f"s{number % 40}", f"t{number % 30}") for number in range(200)] + [("", "t1")]


def test_a_held_out_set_has_its_size_and_no_pair_twice() -> None:
    _, held_out = hold_out(PAIRS, 5, seed=1)
    assert len(held_out) == len(set(held_out)) == 5


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_a_held_out_set_shares_no_sentence_with_training(side: int) -> None:
    train, held_out = hold_out(PAIRS, 5, seed=1)
    assert not {pair[side] for pair in train} & {pair[side] for pair in held_out}


def test_the_seed_determines_what_is_held_out() -> None:
    assert hold_out(PAIRS, 5, seed=1) == hold_out(PAIRS, 5, seed=1) != hold_out(PAIRS, 5, seed=2)


def test_no_more_can_be_held_out_than_there_is() -> None:
    with pytest.raises(UserError, match=r"cannot hold out 500 .* lower --val_size"):
        hold_out(PAIRS, 500, seed=1)


def test_a_small_text_has_fewer_pieces_than_asked_for(tmp_path: Path) -> None:
    subwords = Subwords("sentencepiece", symbols=5000, joint=True, tokens=False)
    segmenter = subwords.learn([["ab ab ab"]], tmp_path / "model")
    assert segmenter.divide("ab a") == ["▁ab", "▁a"]


def test_fewer_pieces_than_letters_are_refused(tmp_path: Path) -> None:
    subwords = Subwords("sentencepiece", symbols=3, joint=True, tokens=False)
    with pytest.raises(UserError, match=r"cannot learn 3 subwords: .* smaller than required"):
        subwords.learn([["ab ab ab"]], tmp_path / "model")


class Learned(NamedTuple):
    """Subwords of German text."""

    segmenter: Segmenter
    tokens: bool
    """Whether the text is tokenised."""


@pytest.fixture(
    scope="module",
    params=[("bpe", True), ("bpe", False), ("sentencepiece", False)],
    ids=["BPE of tokens", "BPE of raw text", "SentencePiece"],
)
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    kind, tokens = request.param
    if kind == "bpe":
        pytest.importorskip("pyonmttok")
    generator = random.Random(3)
    words = "der Hund läuft über die Straße und bellt , weil er Katzen jagt .".split()
    lines = [" ".join(generator.choices(words, k=generator.randint(3, 9))) for _ in range(300)]
    subwords = Subwords(kind, symbols=70, joint=True, tokens=tokens)
    return Learned(subwords.learn([lines], tmp_path_factory.mktemp("subwords") / "model"), tokens)


@given(line=st.text(alphabet="aäzAZ09 .,!?'\"()-%&犬走吠。、％：＃￭￨▁｟", max_size=40))
def test_subwords_join_to_the_text_that_was_divided(learned: Learned, line: str) -> None:
    text = normalise(line, "de", learned.tokens)
    pieces = learned.segmenter.divide(text)
    assert learned.segmenter.join(pieces) == text
    assert not any(" " in piece for piece in pieces)
