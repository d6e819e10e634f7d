"""Pretrained word vectors from text files."""

from pathlib import Path

import pytest

from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError

WORDS = Vocabulary(("<unk>", "<blank>", "dog", "Straße", "."))
GLOVE = "dog\t1  2 3\n\n. . . 7 7 7\nStraße -0.5 1e-3 2\nother 1 1 1\ndog 9 9 9\n"


@pytest.mark.parametrize(("kind", "head"), [("GloVe", ""), ("word2vec", "5 3\n")])
def test_both_forms_give_the_vectors_of_known_words(tmp_path: Path, kind: str, head: str) -> None:
    path = tmp_path / "vectors"
    path.write_text(head + GLOVE, encoding="utf-8")
    vectors = read_vectors(path, kind, WORDS, 3)
    assert {index: vector.tolist() for index, vector in vectors.items()} == {
        2: [1.0, 2.0, 3.0],
        3: [-0.5, pytest.approx(1e-3), 2.0],
    }


@pytest.mark.parametrize(
    ("content", "kind", "size", "message"),
    [
        (GLOVE, "GloVe", 4, "vectors of 3 numbers, but word_vec_size is 4"),
        ("5 3\n" + GLOVE, "word2vec", 4, "vectors of 3 numbers"),
        ("5 3\n" + GLOVE, "GloVe", 3, "is embeddings_type word2vec"),
        (GLOVE, "word2vec", 3, "is embeddings_type GloVe"),
        ("dog 1 2 3\nStraße 1 two 3\n", "GloVe", 3, "line 2: expected a word and 3 finite numbers"),
        ("dog 1 2 3\nStraße 1 nan 3\n", "GloVe", 3, "line 2: .* finite numbers"),
        ("dog 1 2 3\nStraße 1\n", "GloVe", 2, "vectors of 3 numbers"),
        ("", "GloVe", 3, "line 1 is empty; expected a word and 3 numbers"),
    ],
)
def test_files_that_do_not_fit(
    tmp_path: Path, content: str, kind: str, size: int, message: str
) -> None:
    path = tmp_path / "vectors"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_vectors(path, kind, WORDS, size)


def test_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(b"5 3\ndog \x93\xff\x00\x81")
    with pytest.raises(UserError, match="not UTF-8 text"):
        read_vectors(path, "word2vec", WORDS, 3)
    with pytest.raises(UserError, match="No such file"):
        read_vectors(tmp_path / "missing", "GloVe", WORDS, 3)
