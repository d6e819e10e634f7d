"""A few cases of the attacks that `python -m tools.attack` goes on with."""

from pathlib import Path

import pytest

from tests.faults.attacks import build, tried

CASES = [
    ("kills", 1),
    *(pytest.param(name, 3, marks=pytest.mark.slow) for name in ("kills", "signals", "disk")),
    *(("flips", 4), ("folders", 12), ("inputs", 30)),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacked") / "world"
    folder.mkdir()
    return build(folder)


@pytest.mark.parametrize(("name", "cases"), CASES)
def test_nothing_is_lost_or_let_in(world: Path, name: str, cases: int) -> None:
    """`python -m tools.attack --replay NAME:SEED` tries a case that fails here again."""
    results = {f"{name}:{seed}": tried(name, world, seed) for seed in range(cases)}
    assert not {seed: result for seed, result in results.items() if result[1]}
