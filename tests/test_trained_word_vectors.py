"""Pretrained word vectors by the real command: where training starts, and when it leaves them."""

from pathlib import Path

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
    """The corpora."""
    folder = tmp_path_factory.mktemp("words")
    toy_ende(folder)
    return folder


def vector(letter: str) -> Tensor:
    """Return the vector ``(WORD_VEC_SIZE,)`` of a letter in the file."""
    return torch.tensor([ord(letter) + n / 10 for n in range(WORD_VEC_SIZE)])


def word_vectors(run: Path) -> Tensor:
    """Return the encoder's word vectors ``(words, WORD_VEC_SIZE)`` after two updates."""
    return weights(run, 2)["encoder.embeddings.make_embedding.emb_luts.0.weight"]


class TestWordVectors:
    @pytest.fixture(scope="class")
    def path(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A file in GloVe's format, which begins with a byte order mark."""
        path = tmp_path_factory.mktemp("vectors") / "vectors"
        rows = [f"{letter} {' '.join(map(str, vector(letter).tolist()))}" for letter in "abcXYZA"]
        path.write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
        return path

    @pytest.fixture(scope="class")
    def options(self, path: Path) -> list[object]:
        return [*TWO_UPDATES, "-both_embeddings", path, "-embeddings_type", "GloVe"]

    @pytest.fixture(scope="class")
    def printed(self, folder: Path, path: Path, options: list[object]) -> str:
        """What a training with frozen vectors prints, which writes the folder `frozen`."""
        frozen = ["-freeze_word_vecs_enc", "-freeze_word_vecs_dec"]
        return train(folder, *options, *frozen, run=str(path.parent / "frozen"))

    @pytest.fixture(scope="class")
    def frozen(self, printed: str, path: Path) -> Path:
        return path.parent / "frozen"

    def test_are_counted(self, printed: str, path: Path) -> None:
        """The vocabulary has a, b and c, and at most A of the target letters."""
        assert f"{path}: vectors for 3 of" in printed

    def test_are_where_training_starts(self, frozen: Path) -> None:
        vocabulary = Translator.from_folders([frozen]).vocabularies.source
        for letter in "abc":
            (index,) = vocabulary.encode([letter])
            assert torch.equal(word_vectors(frozen)[index], vector(letter))

    def test_of_other_words_are_random(self, frozen: Path) -> None:
        vocabulary = Translator.from_folders([frozen]).vocabularies.source
        (index,) = vocabulary.encode(["d"])
        assert word_vectors(frozen)[index].abs().max() < 10

    def test_are_trained_unless_they_are_frozen(
        self, folder: Path, frozen: Path, options: list[object], tmp_path: Path
    ) -> None:
        train(folder, *options, run=str(tmp_path / "trained"))
        assert not torch.equal(word_vectors(tmp_path / "trained"), word_vectors(frozen))
