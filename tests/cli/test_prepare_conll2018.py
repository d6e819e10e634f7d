"""`onmt-entmax prepare sigmorphon` of all languages of CoNLL-SIGMORPHON 2018."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.sigmorphon import Prepared, prepare_into

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def medium(conll2018: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All languages of the setting `medium`."""
    folder = tmp_path_factory.mktemp("medium")
    return prepare_into(folder, "--data", conll2018, "--setting", "medium")


def test_a_language_without_medium_is_named(medium: Prepared) -> None:
    assert "left out, no dev or no train-medium: telugu" in medium.printed


class Pairs(NamedTuple):
    """The lines of a split: most of the 102 languages have 1,000, and the others have fewer."""

    count: int
    sources: list[str]
    targets: list[str]


@pytest.fixture(scope="module", params=[("train", 95_323), ("dev", 65_200)], ids=["train", "dev"])
def pairs(request: pytest.FixtureRequest, medium: Prepared) -> Pairs:
    split, count = request.param
    source, target = (
        (medium.folder / f"{split}.{side}").read_text(encoding="utf-8") for side in ("src", "tgt")
    )
    return Pairs(
        count, source.removesuffix("\n").split("\n"), target.removesuffix("\n").split("\n")
    )


def test_all_rows_of_a_split_are_written(pairs: Pairs) -> None:
    assert len(pairs.sources) == len(pairs.targets) == pairs.count


def test_a_split_has_all_languages_of_medium(pairs: Pairs) -> None:
    assert len({source.split(" ", 1)[0] for source in pairs.sources}) == 102


def test_every_row_has_a_target(pairs: Pairs) -> None:
    assert all(pairs.targets)
