"""Pretrained word vectors from text files of GloVe's and word2vec's form."""

from pathlib import Path

import pytest
from torch import Tensor

from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError

WORDS = Vocabulary(("<unk>", "<blank>", "dog", "Straße", "."))
DOG, STREET = "dog 1 2 3\n", "Straße -0.5 1e-3 2\n"
HEAD = "2 3\n"  # of word2vec: two words, three numbers each
both_kinds = pytest.mark.parametrize(
    ("kind", "head"),
    [pytest.param("GloVe", "", id="GloVe"), pytest.param("word2vec", HEAD, id="word2vec")],
)


def written(folder: Path, content: str) -> Path:
    path = folder / "vectors"
    path.write_text(content, encoding="utf-8")
    return path


def as_lists(vectors: dict[int, Tensor]) -> dict[int, list[float]]:
    return {index: vector.tolist() for index, vector in vectors.items()}


@both_kinds
def test_both_forms_give_vectors_by_the_ids_of_words(tmp_path: Path, kind: str, head: str) -> None:
    vectors = read_vectors(written(tmp_path, head + DOG + STREET), kind, WORDS, 3)
    assert as_lists(vectors) == {2: [1, 2, 3], 3: pytest.approx([-0.5, 1e-3, 2])}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("dog\t1  2 3\n", id="a tab and two spaces divide"),
        pytest.param(DOG + "\n", id="a blank line"),
        pytest.param(DOG + ". . . 7 7 7\n", id="a word with spaces, not the full stop"),
        pytest.param(DOG + "other 1 1 1\n", id="a word outside the vocabulary"),
        pytest.param(DOG + "dog 9 9 9\n", id="a second line of a word"),
    ],
)
@both_kinds
def test_all_this_gives_the_vector_of_one_word(
    tmp_path: Path, kind: str, head: str, content: str
) -> None:
    vectors = read_vectors(written(tmp_path, head + content), kind, WORDS, 3)
    assert as_lists(vectors) == {2: [1, 2, 3]}


@pytest.mark.parametrize(
    ("content", "kind", "size", "message"),
    [
        pytest.param(
            DOG, "GloVe", 4, "vectors of 3 numbers, but word_vec_size is 4", id="other size"
        ),
        pytest.param(
            HEAD + DOG, "word2vec", 4, "vectors of 3 numbers", id="other size, below a heading"
        ),
        pytest.param(
            HEAD + DOG, "GloVe", 3, "is embeddings_type word2vec", id="a heading in GloVe"
        ),
        pytest.param(DOG, "word2vec", 3, "is embeddings_type GloVe", id="no heading in word2vec"),
        pytest.param(
            DOG + "Straße 1 two 3\n",
            "GloVe",
            3,
            "line 2: expected a word and 3 finite numbers",
            id="no number",
        ),
        pytest.param(
            DOG + "Straße 1 nan 3\n", "GloVe", 3, "line 2: .* finite numbers", id="not finite"
        ),
        pytest.param(
            DOG + "Straße 1\n",
            "GloVe",
            3,
            "line 2: expected a word and 3 finite numbers",
            id="sizes differ",
        ),
        pytest.param(
            "", "GloVe", 3, "line 1 is empty; expected a word and 3 numbers", id="empty file"
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, content: str, kind: str, size: int, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_vectors(written(tmp_path, content), kind, WORDS, size)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(b"5 3\ndog \x93\xff\x00\x81")
    with pytest.raises(UserError, match="not UTF-8 text"):
        read_vectors(path, "word2vec", WORDS, 3)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing: .*No such file"):
        read_vectors(tmp_path / "missing", "GloVe", WORDS, 3)
