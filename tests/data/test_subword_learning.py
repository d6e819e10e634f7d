"""Subwords that are learned from text: BPE and SentencePiece."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.normalisation import normalise
from onmt_entmax.data.subword_learning import Segmenter, Subwords
from onmt_entmax.errors import UserError


def test_a_small_text_has_fewer_pieces_than_asked_for(tmp_path: Path) -> None:
    subwords = Subwords("sentencepiece", symbols=5000, joint=True, is_tokenised=False)
    segmenter = subwords.learn([["ab ab ab"]], tmp_path / "model")
    assert segmenter.divide("ab a") == ["▁ab", "▁a"]


def test_fewer_pieces_than_letters_are_refused(tmp_path: Path) -> None:
    subwords = Subwords("sentencepiece", symbols=3, joint=True, is_tokenised=False)
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
    subwords = Subwords(kind, symbols=70, joint=True, is_tokenised=tokens)
    return Learned(subwords.learn([lines], tmp_path_factory.mktemp("subwords") / "model"), tokens)


@given(line=st.text(alphabet="aäzAZ09 .,!?'\"()-%&犬走吠。、％：＃￭￨▁｟", max_size=40))
def test_subwords_join_to_the_text_that_was_divided(learned: Learned, line: str) -> None:
    text = normalise(line, "de", learned.tokens)
    pieces = learned.segmenter.divide(text)
    assert learned.segmenter.join(pieces) == text
    assert not any(" " in piece for piece in pieces)
