"""The command line of the comparison with peers: its help, what it refuses, and `--core`."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.fake_peers import arguments_in
from tests.in_process import refusal
from tools.bench import peers
from tools.bench.peer_systems import SYSTEMS

if sys.platform != "linux":
    pytest.skip("processor times are read from /proc", allow_module_level=True)


def test_the_help_has_one_command_for_each_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Both systems of yoyodyne share an environment."""
    with pytest.raises(SystemExit):
        peers.parse_arguments(["--help"])
    environments = re.findall("python3 -m venv (PEERS/[a-z]+)", capsys.readouterr().out)
    expected = {f"PEERS/{system.environment}" for system in SYSTEMS if system.environment}
    assert len(expected) > 1
    assert sorted(environments) == sorted(expected)


def test_an_existing_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "earlier").write_text("figures")
    assert "exists; name a new folder" in refusal(peers.main, arguments_in(tmp_path))
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {
        "earlier": "figures"
    }


# --- the core that the commands use ---


def test_a_core_that_the_process_may_not_use_is_refused(tmp_path: Path) -> None:
    message = refusal(peers.main, [*arguments_in(tmp_path), "--core", "4000"])
    assert "--core 4000: not allowed here" in message


@pytest.fixture
def used_cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The sets of cores to which the process, which may use 3 and 5, is limited in turn."""
    used: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: used.append(cores))
    return used


def test_by_default_the_commands_use_the_first_core(used_cores: list[set[int]]) -> None:
    with peers.on_one_core(None):
        assert used_cores == [{3}]


def test_afterwards_the_process_may_use_all_its_cores_again(used_cores: list[set[int]]) -> None:
    with peers.on_one_core(None):
        used_cores.clear()
    assert used_cores == [{3, 5}]
