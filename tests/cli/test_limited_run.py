"""Commands of a benchmark that are stopped after so much processor time."""

import signal
import sys
from pathlib import Path

import pytest

from tools.bench.limited_run import Used, run
from tools.bench.peer_systems.system import Command

if sys.platform != "linux":
    pytest.skip("processor times are read from /proc", allow_module_level=True)

LIMIT = 0.3  # seconds of processor time
BUSY = "import time\nwhile time.process_time() < 5: pass"  # far longer than the limit
# Starts a busy child, and writes its process id.
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BUSY!r}])
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def stopped(log: Path) -> Used:
    """A command that only waits for its child, and is stopped for the time that the child uses."""
    return run(Command([sys.executable, "-c", PARENT]), log, LIMIT)


def test_the_time_of_a_child_counts(stopped: Used) -> None:
    assert stopped.processor >= LIMIT


def test_a_command_over_its_limit_is_terminated(stopped: Used) -> None:
    assert (stopped.stopped, stopped.status) == (True, -signal.SIGTERM)


@pytest.mark.usefixtures("stopped")
def test_a_child_ends_with_its_parent(log: Path) -> None:
    """If anything is left of it, that is the entry of an ended process, which has no command."""
    command = Path("/proc", log.read_text().strip(), "cmdline")
    assert not command.exists() or command.read_bytes() == b""


def test_a_sleeping_command_uses_no_time(log: Path) -> None:
    """It sleeps longer than it may compute."""
    code = f"import time; time.sleep({LIMIT} + 0.2)"
    used = run(Command([sys.executable, "-c", code]), log, LIMIT)
    assert not used.stopped
    assert used.processor < LIMIT < used.wall
