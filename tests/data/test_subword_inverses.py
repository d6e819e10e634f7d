"""Inverses of subword transforms: the text of target tokens."""

from argparse import Namespace
from pathlib import Path

import pytest
import sentencepiece

from onmt_entmax.data.transforms import Pipe, build_transforms
from tests.subword_models import TEXTS, learn_sentencepiece


def pipe_with(name: str, model: Path) -> Pipe:
    """Return a pipe of one subword transform, as `translate` builds it.

    Args:
        name: name of the transform.
        model: the subword model of both sides.
    """
    options: dict[str, object] = {"share_vocab": False}
    for side in ("src", "tgt"):
        options |= {
            f"{side}_subword_model": str(model),
            f"{side}_subword_nbest": 1,
            f"{side}_subword_alpha": 0,
            f"{side}_subword_vocab": "",
            f"{side}_vocab_threshold": 0,
        }
    return build_transforms([name], Namespace(**options), None)


# --- sentencepiece ---


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pieces") / "subwords"


@pytest.fixture(scope="module")
def model(model_path: Path) -> sentencepiece.SentencePieceProcessor:
    """A model of `TEXTS`, also written to `model_path`."""
    return learn_sentencepiece(model_path)


@pytest.fixture(scope="module")
def pieces(model_path: Path, model: sentencepiece.SentencePieceProcessor) -> Pipe:
    """The transform with the model of `TEXTS`."""
    return pipe_with("sentencepiece", model_path)


@pytest.mark.parametrize("text", [*TEXTS, "", "x", "homes, homes"])
def test_pieces_become_their_text(
    pieces: Pipe, model: sentencepiece.SentencePieceProcessor, text: str
) -> None:
    tokens = model.encode(text, out_type=str)
    assert pieces.apply_reverse(" ".join(tokens)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        pytest.param("▁the <unk> s ▁man", "the <unk> s man", id="unknown within a word"),
        pytest.param("<unk> <unk>", "<unk> <unk>", id="unknown alone"),
        pytest.param("▁Haus ▁the", "Haus the", id="a source piece that replaced an unknown one"),
        pytest.param("▁", "", id="a space alone"),
    ],
)
def test_unusual_pieces_become_their_text(pieces: Pipe, tokens: str, text: str) -> None:
    assert pieces.apply_reverse(tokens) == text


# --- bpe ---


@pytest.fixture
def merges(tmp_path: Path) -> Pipe:
    """The transform with one merge; its inverse reads none of them."""
    pytest.importorskip("subword_nmt")
    path = tmp_path / "merges"
    path.write_text("#version: 0.2\na b\n")
    return pipe_with("bpe", path)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        pytest.param("w@@ om@@ an walks .", "woman walks .", id="three pieces"),
        pytest.param("a@@", "a", id="no piece follows"),
        pytest.param("a@@ <unk> b", "a<unk> b", id="unknown follows"),
        pytest.param("a @@b", "a @@b", id="marks that begin a token"),
        pytest.param("@ a@@ @@ b", "@ ab", id="marks alone"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_merges_become_words(merges: Pipe, tokens: str, text: str) -> None:
    assert merges.apply_reverse(tokens) == text
