"""A model folder and its archive, for tests of files."""

from pathlib import Path

import pytest

from tests.files.repacking import NAME
from tests.inflection_models import write_model, zipped


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model; tests only read it."""
    seed = 22  # of the weights; any would do
    return write_model(tmp_path_factory.mktemp("archives") / NAME, seed)


@pytest.fixture(scope="session")
def archive(model_folder: Path) -> Path:
    """The archive of `model_folder`; tests only read it."""
    path = model_folder.with_suffix(".zip")
    zipped(model_folder, path)
    return path
