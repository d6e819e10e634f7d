"""Data of a shared task."""

import os
from pathlib import Path

import pytest

from tests.commands import ROOT


@pytest.fixture(scope="session")
def conll2018() -> Path:
    """The folder of the CoNLL-SIGMORPHON 2018 data."""
    folder = Path(os.environ.get("ONMT_ENTMAX_DATA", ROOT.parent / "shared" / "data")) / "conll2018"
    if not folder.is_dir():
        pytest.skip(f"no CoNLL-SIGMORPHON 2018 data in {folder} (set ONMT_ENTMAX_DATA)")
    return folder
