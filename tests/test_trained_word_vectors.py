"""Pretrained word vectors, with which training starts: frozen, or trained with the network."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.translator import Translator
from tests.commands import weights
from tests.toy import toy_ende
from tests.word_task import WORD_VEC_SIZE, train

TWO_UPDATES = ("-train_steps", 2, "-save_checkpoint_steps", 2, "-valid_steps", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora."""
    folder = tmp_path_factory.mktemp("words")
    toy_ende(folder)
    return folder


LETTERS = "abcXYZA"  # with a vector in the file; the sources have the letters a to h


def pretrained(letter: str) -> Tensor:
    """Return the vector ``(WORD_VEC_SIZE,)`` of a letter in the file.

    Its numbers are above 60, and so unlike those of a random vector.
    """
    return torch.tensor([ord(letter) + n / 10 for n in range(WORD_VEC_SIZE)])


@pytest.fixture(scope="module")
def vectors(folder: Path) -> Path:
    """A file in GloVe's format, which begins with a byte order mark."""
    path = folder / "vectors"
    rows = [f"{letter} {' '.join(map(str, pretrained(letter).tolist()))}" for letter in LETTERS]
    path.write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


class Trained(NamedTuple):
    """A training of two updates that started with the vectors."""

    run: Path
    printed: str

    def word_vectors(self) -> Tensor:
        """Return the word vectors ``(words, WORD_VEC_SIZE)`` of the encoder."""
        return weights(self.run, 2)["encoder.embeddings.make_embedding.emb_luts.0.weight"]

    def vector(self, letter: str) -> Tensor:
        """Return the word vector ``(WORD_VEC_SIZE,)`` of a source letter."""
        (index,) = Translator.from_folders([self.run]).vocabularies.source.encode([letter])
        return self.word_vectors()[index]


def train_with(vectors: Path, name: str, *options: str) -> Trained:
    """Train with the vectors and further options; `name` is that of the run."""
    folder = vectors.parent
    files = ("-both_embeddings", vectors, "-embeddings_type", "GloVe")
    return Trained(folder / name, train(folder, *TWO_UPDATES, *files, *options, run=name))


@pytest.fixture(scope="module")
def frozen(vectors: Path) -> Trained:
    """A training that leaves the word vectors of both sides as they are."""
    return train_with(vectors, "frozen", "-freeze_word_vecs_enc", "-freeze_word_vecs_dec")


def test_source_letters_with_a_vector_are_counted(frozen: Trained, vectors: Path) -> None:
    """They are a, b and c."""
    assert f"{vectors}: vectors for 3 of" in frozen.printed


@pytest.mark.parametrize("letter", ["a", "b", "c"])
def test_training_starts_with_the_vectors_of_the_file(frozen: Trained, letter: str) -> None:
    assert torch.equal(frozen.vector(letter), pretrained(letter))


def test_a_letter_without_a_vector_has_a_random_one(frozen: Trained) -> None:
    """A random vector has small numbers."""
    assert 0 < frozen.vector("d").abs().max() < 10


def test_vectors_are_trained_unless_they_are_frozen(vectors: Path, frozen: Trained) -> None:
    trained = train_with(vectors, "trained")
    assert not torch.equal(trained.word_vectors(), frozen.word_vectors())
