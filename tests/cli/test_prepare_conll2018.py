"""`onmt-entmax prepare sigmorphon` of all languages of CoNLL-SIGMORPHON 2018."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.sigmorphon import Prepared, prepare_into
from tests.commands import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def conll2018() -> Path:
    """The folder of the CoNLL-SIGMORPHON 2018 data."""
    folder = Path(os.environ.get("ONMT_ENTMAX_DATA", ROOT.parent / "shared" / "data")) / "conll2018"
    if not folder.is_dir():
        pytest.skip(f"no CoNLL-SIGMORPHON 2018 data in {folder} (set ONMT_ENTMAX_DATA)")
    return folder


@pytest.fixture(scope="module")
def medium(conll2018: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All languages of the setting `medium`."""
    folder = tmp_path_factory.mktemp("medium")
    return prepare_into(folder, "--data", conll2018, "--setting", "medium")


def test_a_language_without_medium_is_named(medium: Prepared) -> None:
    assert "left out, no dev or no train-medium: telugu" in medium.printed


class Split(NamedTuple):
    """The tokens of the training or development set, which has at most 1,000 rows of a language."""

    rows: int
    """The number of rows in the published tables."""
    sources: list[str]
    targets: list[str]


@pytest.fixture(scope="module", params=[("train", 95_323), ("dev", 65_200)], ids=["train", "dev"])
def split(request: pytest.FixtureRequest, medium: Prepared) -> Split:
    name, rows = request.param
    source, target = (
        # Some words have characters that `splitlines` takes for line ends.
        (medium.folder / f"{name}.{side}").read_text(encoding="utf-8").split("\n")[:-1]
        for side in ("src", "tgt")
    )
    return Split(rows, source, target)


def test_all_rows_of_a_split_are_written(split: Split) -> None:
    assert len(split.sources) == len(split.targets) == split.rows


def test_a_split_has_all_languages_of_medium(split: Split) -> None:
    assert len({source.split(" ", 1)[0] for source in split.sources}) == 102


def test_every_row_has_a_target(split: Split) -> None:
    assert all(split.targets)
