"""Every way to start a command, in a new interpreter: other tests fork a server of commands."""

import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.cli.main import COMMANDS, GROUPS
from tests.commands import CONSOLE, ROOT, execute, run

INSTALLED = Path(sys.executable).parent / "onmt-entmax"
SCRIPTS = ["train.py", "translate.py", *sorted(f"tools/{p.name}" for p in ROOT.glob("tools/*.py"))]


def help_of(done: subprocess.CompletedProcess[str]) -> str:
    """Fail unless a command printed its help without a warning; return it."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "usage: " in done.stdout
    return done.stdout


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith("tools/") else ())
        for name in SCRIPTS
    ],
)
def test_scripts_of_a_checkout_start_in_any_folder(script: str, tmp_path: Path) -> None:
    help_of(run(script, "-h", cwd=tmp_path, fresh=True))


def test_the_console_command_lists_its_commands(tmp_path: Path) -> None:
    listed = help_of(execute(CONSOLE, tmp_path))
    assert all(name.split()[0] in listed for name in COMMANDS)


# The package may be on the path without being installed.
@pytest.mark.skipif(not INSTALLED.exists(), reason="onmt-entmax is not installed")
def test_the_installed_command_lists_the_same(tmp_path: Path) -> None:
    assert help_of(execute([str(INSTALLED)], tmp_path)) == help_of(execute(CONSOLE, tmp_path))


@pytest.mark.parametrize("name", [name for group in GROUPS.values() for name in group])
def test_each_console_command_has_a_help(name: str) -> None:
    assert f"usage: onmt-entmax {name}" in help_of(run("onmt_entmax", *name.split(), "-h"))


def test_a_real_process_ends_with_one_line_and_status_2(tmp_path: Path) -> None:
    options = ["-model", "nowhere", "-src", "nothing", "-output", "out"]
    done = run("translate.py", *options, cwd=tmp_path, fresh=True)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("translate.py: error: ")
