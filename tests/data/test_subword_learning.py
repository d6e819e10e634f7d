"""Subwords that are learned from text, with BPE (pyonmttok) and with SentencePiece."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.normalisation import normalise
from onmt_entmax.data.subword_learning import Segmenter, Subwords
from onmt_entmax.errors import UserError

# --- texts that are too small ---


def pieces(symbols: int) -> Subwords:
    """Return the settings of SentencePiece for so many pieces of text that is not tokenised."""
    return Subwords("sentencepiece", symbols, joint=True, is_tokenised=False)


def test_a_small_text_has_fewer_pieces_than_asked_for(tmp_path: Path) -> None:
    segmenter = pieces(5000).learn([["ab ab ab"]], tmp_path / "model")
    assert segmenter.divide("ab a") == ["▁ab", "▁a"]


def test_fewer_pieces_than_letters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot learn 3 subwords: .* smaller than required"):
        pieces(3).learn([["ab ab ab"]], tmp_path / "model")


# --- German text ---


class Learned(NamedTuple):
    """Subwords of a text.

    Attributes:
        segmenter: divides lines into them.
        is_tokenised: whether the text was tokenised.
    """

    segmenter: Segmenter
    is_tokenised: bool


@pytest.fixture(
    scope="module",
    params=[("bpe", True), ("bpe", False), ("sentencepiece", False)],
    ids=["BPE of tokens", "BPE of raw text", "SentencePiece"],
)
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """Seventy subwords of 300 random lines."""
    kind, is_tokenised = request.param
    if kind == "bpe":
        pytest.importorskip("pyonmttok")
    generator = random.Random(3)
    words = "der Hund läuft über die Straße und bellt , weil er Katzen jagt .".split()
    lines = [" ".join(generator.choices(words, k=generator.randint(3, 9))) for _ in range(300)]
    subwords = Subwords(kind, symbols=70, joint=True, is_tokenised=is_tokenised)
    model = tmp_path_factory.mktemp("subwords") / "model"
    return Learned(subwords.learn([lines], model), is_tokenised)


# Letters of the text and others, punctuation, Japanese, and the marks of both libraries.
LINES = st.text(alphabet="aäzAZ09 .,!?'\"()-%&犬走吠。、％：＃￭￨▁｟", max_size=40)


@given(line=LINES)
def test_subwords_join_to_the_text_that_was_divided(learned: Learned, line: str) -> None:
    text = normalise(line, "de", learned.is_tokenised)
    assert learned.segmenter.join(learned.segmenter.divide(text)) == text


@given(line=LINES)
def test_no_subword_has_a_space(learned: Learned, line: str) -> None:
    text = normalise(line, "de", learned.is_tokenised)
    assert not any(" " in subword for subword in learned.segmenter.divide(text))
