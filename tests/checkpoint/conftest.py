"""A model folder that tests may read, and one that they may damage."""

import shutil
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from tests.models import BRNN, VOCABULARIES


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with a training state; tests only read it."""
    folder = tmp_path_factory.mktemp("models") / "model"
    save(
        folder,
        build_model(BRNN, VOCABULARIES),
        BRNN,
        VOCABULARIES,
        options={"seed": 1},
        training_state={"step": 3},
    )
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of the saved model."""
    return Path(shutil.copytree(saved, tmp_path / "model"))
