"""Data of a shared task, and a small model of inflection."""

import os
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.inflection_models import write_model


@pytest.fixture(scope="session")
def conll2018() -> Path:
    """The folder of the CoNLL-SIGMORPHON 2018 data."""
    folder = Path(os.environ.get("ONMT_ENTMAX_DATA", ROOT.parent / "shared" / "data")) / "conll2018"
    if not folder.is_dir():
        pytest.skip(f"no CoNLL-SIGMORPHON 2018 data in {folder} (set ONMT_ENTMAX_DATA)")
    return folder


@pytest.fixture(scope="session")
def inflection_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model of inflection; tests only read it."""
    return write_model(tmp_path_factory.mktemp("inflection") / "model", 22)
