"""Small versions of the attacks of `tools.attack`, and defects on purpose that they must notice."""

from pathlib import Path
from unittest import mock

import pytest

from onmt_entmax.cli.main import COMMANDS
from tests import commands
from tests.faults import flips, running, writes
from tests.faults.attack import Attack, checked, tried
from tests.faults.attacks import ATTACKS
from tests.faults.child import PLANT
from tests.faults.inputs import Case as Input
from tests.faults.running import Plan, attempt
from tests.faults.world import CALLS, STEPS, World, build, existing
from tools import attack

CASES = {"kills": 6, "flips": 12, "folders": 30, "inputs": 300, "signals": 5, "disk": 5}
TOGETHER = 10  # cases of a test


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("attacked").resolve() / "world"
    folder.mkdir()
    return build(folder)


@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name, size in CASES.items() for first in range(0, size, TOGETHER)],
)
def test_nothing_is_lost_or_let_in(world: World, name: str, first: int) -> None:
    """`python -m tools.attack --replay NAME:SEED` tries a case that fails here again."""
    seeds = range(first, min(first + TOGETHER, CASES[name]))
    found = {f"{name}:{seed}": tried(ATTACKS[name], world, seed) for seed in seeds}
    failed = {replay: (str(case), wrong) for replay, (case, wrong) in found.items() if wrong}
    assert not failed


def test_a_training_killed_at_event_after_event_ends_like_another(world: World, tmp_path) -> None:
    """Each start is killed four events later than the one before, until one comes to the end."""
    good = writes.undisturbed(world, "train").outputs
    for start in range(1, 200, 4):
        plan = Plan("SIGKILL", start, str(tmp_path), f"{tmp_path}/../events")
        call = world.call("train", tmp_path)
        if writes.checkpoint_steps(tmp_path / "run"):
            call += ["-train_from", f"{tmp_path}/run"]
        if attempt(call, tmp_path, plan).status == 0:
            break
    assert start > 10
    name = f"run/step_{STEPS}/model.safetensors"
    assert writes.outputs(tmp_path)[name] == good[name]
    assert not writes.hidden(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["SIGKILL", "SIGTERM", "full"])
@pytest.mark.parametrize("call", "train translate report export combine".split())
def test_event_after_event(world: World, call: str, fault: str) -> None:
    """A fault at each event of a command in turn; of a long one, at every tenth."""
    if call not in existing():
        pytest.skip(f"no command {call}")
    events = writes.undisturbed(world, call).events["full" if fault == "full" else "SIGKILL"]
    cases = [writes.Case(call, fault, n, None, False, e) for n, e in enumerate(events, 1)]
    cases = cases[:: 1 if len(cases) < 30 else 10]
    failed = {str(case): checked(ATTACKS["kills"], world, case) for case in cases}
    assert not {case: wrong for case, wrong in failed.items() if wrong}


# `fetch-model` needs the checksum of its archive: `tests/test_released.py` tries bad ones.
LEFT_OUT = {"fetch-model", "serve"}


def test_every_command_is_attacked() -> None:
    called = [f"{call[0]} " for call in CALLS.values()]
    attacked = {name for name in COMMANDS if any(call.startswith(f"{name} ") for call in called)}
    assert attacked == COMMANDS.keys() - LEFT_OUT


class TestPlanted:
    """Attacks on a program that has a defect."""

    @pytest.fixture
    def plant(self, monkeypatch: pytest.MonkeyPatch):
        return lambda name: monkeypatch.setitem(commands.ENVIRONMENT, PLANT, name)

    @pytest.mark.parametrize("damage", ["other step", "zeros"])
    def test_files_that_are_not_checked(self, world: World, plant, damage: str) -> None:
        file = f"step_{STEPS}/model.safetensors"
        case = flips.Case(file, damage, 0.8, 0, "translate")
        assert checked(flips.FLIPS, world, case) is None
        plant("unchecked")
        assert "without a word" in checked(flips.FLIPS, world, case)

    def test_a_file_that_is_written_in_place(self, world: World, plant) -> None:
        kills = [writes.Case("combine", "SIGKILL", at) for at in range(1, 40)]
        writes.undisturbed(world, "combine")
        plant("torn")
        found = [checked(writes.KILLS, world, case) for case in kills]
        assert any(wrong is not None and "left a part of" in wrong for wrong in found)

    def test_a_training_that_resumes_without_its_state(self, world: World, plant) -> None:
        events = writes.undisturbed(world, "train").events["SIGKILL"]
        at = max(n for n, event in enumerate(events, 1) if event.startswith("write"))
        plant("forgetful")
        wrong = checked(writes.KILLS, world, writes.Case("train", "SIGKILL", at))
        assert "called again: another" in wrong

    def test_a_training_that_hears_no_signal(self, world: World, plant) -> None:
        writes.undisturbed(world, "train")
        plant("deaf")
        wrong = checked(writes.SIGNALLED, world, writes.Case("train", "SIGTERM", 10))
        assert "goes on after SIGTERM" in wrong

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("traceback", "traceback: KeyError: 'a bug'"),
            ("hang", "hangs"),
            ("crash", "dies by SIGABRT"),
            ("silent", "status 0, and neither an output nor a word"),
        ],
    )
    def test_a_command_with_a_bug(self, world: World, plant, name: str, wrong: str) -> None:
        case = Input("score", "option", "-batch_size", 1, "7")
        assert checked(ATTACKS["inputs"], world, case) is None
        plant(name)
        with mock.patch.object(running, "PATIENCE", 2):
            assert wrong in checked(ATTACKS["inputs"], world, case)


def test_the_command_shows_what_failed(tmp_path: Path, monkeypatch, capsys) -> None:
    """A failure is printed with its replay, counted, and decides the status."""
    broken = Attack("kills", lambda world, g: "a case", lambda *_: "is wrong")
    monkeypatch.setitem(ATTACKS, "kills", broken)
    monkeypatch.setattr(attack, "build", World)
    output = tmp_path / "found.json"
    arguments = ["--only", "kills", "--cases", "2", "--seed", "3", "--output", str(output)]
    assert attack.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "--replay kills:3000001\n    a case\n    is wrong" in printed
    assert printed.splitlines()[-1].split() == ["together", "2", "2"]
    assert '"failed": {\n    "kills": 2' in output.read_text()
    assert attack.main(["--replay", "kills:5"]) == 1
    fine = Attack("kills", lambda world, g: "a case", lambda *_: None)
    monkeypatch.setitem(ATTACKS, "kills", fine)
    assert attack.main(arguments) == 0
