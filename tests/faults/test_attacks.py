"""The first cases of each attack, of which `python -m tools.attack` tries many more."""

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
    ("name", "seeds"),
    [
        # Each runs a command three times, two of them in a new interpreter.
        pytest.param("kills", range(3), marks=pytest.mark.slow),
        pytest.param("signals", range(3), marks=pytest.mark.slow),
        pytest.param("disk", range(3), marks=pytest.mark.slow),
        # Each runs three commands.
        ("damage", range(2)),
        pytest.param("damage", range(2, 6), marks=pytest.mark.slow),
        # Each runs one command.
        ("folders", range(8)),
        pytest.param("folders", range(8, 24), marks=pytest.mark.slow),
        ("inputs", range(16)),
        pytest.param("inputs", range(16, 60), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_nothing_is_lost_or_let_in(world: Path, name: str, seeds: range) -> None:
    """`python -m tools.attack --replay NAME:SEED` tries a case that fails here again."""
    cases = {f"{name}:{seed}": try_case(name, world, seed) for seed in seeds}
    assert not {name: case for name, case in cases.items() if case.failure is not None}
