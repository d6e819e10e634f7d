"""Inverses of subword transforms: the text of target tokens."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import sentencepiece

from onmt_entmax.data.subwords import Bpe, SentencePiece
from onmt_entmax.data.training import TrainingData
from onmt_entmax.options.train import training_setup
from tests.subword_models import TEXTS, learn_sentencepiece, write_subword_config


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> sentencepiece.SentencePieceProcessor:
    return learn_sentencepiece(tmp_path_factory.mktemp("pieces") / "subwords")


def undo(kind: type[SentencePiece | Bpe], model: object, tokens: list[str]) -> str:
    """Return what the inverse of a transform makes of target tokens.

    The transform gets its model of the target side here, and reads no options.
    """
    transform = kind.__new__(kind)
    transform.load_models = {"src": None, "tgt": model}
    return transform.apply_reverse(" ".join(tokens))


@pytest.mark.parametrize("text", [*TEXTS, "", "x", "homes, homes"])
def test_pieces_become_their_text(model: sentencepiece.SentencePieceProcessor, text: str) -> None:
    assert undo(SentencePiece, model, model.encode(text, out_type=str)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        pytest.param(["▁the", "<unk>", "s", "▁man"], "the <unk> s man", id="unknown within a word"),
        pytest.param(["<unk>", "<unk>"], "<unk> <unk>", id="unknown alone"),
        pytest.param(
            ["▁Haus", "▁the"], "Haus the", id="a source piece that replaced an unknown one"
        ),
        pytest.param(["▁"], "", id="a space alone"),
    ],
)
def test_unusual_pieces_become_their_text(
    model: sentencepiece.SentencePieceProcessor, tokens: list[str], text: str
) -> None:
    assert undo(SentencePiece, model, tokens) == text


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
def test_merges_become_words(tokens: str, text: str) -> None:
    assert undo(Bpe, SimpleNamespace(separator="@@"), tokens.split()) == text


@pytest.mark.usefixtures("pyonmttok")
def test_the_last_transform_is_undone_first(tmp_path: Path) -> None:
    """Words and marks first, then pieces of them, with the space marks of SentencePiece."""
    joined = "{'mode': 'aggressive', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": joined for side in ("src", "tgt")}
    path = write_subword_config(
        tmp_path,
        "sentencepiece",
        transforms=["onmt_tokenize", "sentencepiece"],
        selection="bleu",
        **options,
    )
    setup = training_setup(["-config", str(path)])
    development = TrainingData.read(setup.data, setup.vocabulary).development_set()
    assert "▁" in development.targets[1]
    assert [*map(development.reader.postprocess, development.targets)] == development.texts
