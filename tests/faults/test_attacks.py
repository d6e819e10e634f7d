"""A few cases of the attacks that `python -m tools.attack` goes on with."""

from pathlib import Path

import pytest

from tests.faults.attacked_calls import build
from tests.faults.attacks import try_case


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, run and report that the commands read."""
    folder = tmp_path_factory.mktemp("attacked") / "world"
    folder.mkdir()
    return build(folder)


@pytest.mark.parametrize(
    ("name", "cases"),  # an interruption runs a command several times, a nonsense input once
    [
        ("kills", 1),
        pytest.param("kills", 3, marks=pytest.mark.slow),
        pytest.param("signals", 3, marks=pytest.mark.slow),
        pytest.param("disk", 3, marks=pytest.mark.slow),
        ("damage", 4),
        ("folders", 12),
        ("inputs", 30),
    ],
)
def test_nothing_is_lost_or_let_in(world: Path, name: str, cases: int) -> None:
    """`python -m tools.attack --replay NAME:SEED` tries a case that fails here again."""
    outcomes = {f"{name}:{seed}": try_case(name, world, seed) for seed in range(cases)}
    assert not {seed: outcome for seed, outcome in outcomes.items() if outcome.failure is not None}
