"""Commands that run others: signals let the child save its state, and end both."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import CONSOLE, ENVIRONMENT
from tests.inflection_models import write_model

# A child that collects signals as training does, and needs longer than Python waits for one.
_CHILD = """
import signal, sys, time
from onmt_entmax.cli.children import end_with_parent
received = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: received.append(number))
end_with_parent()
print("ready", flush=True)
while not received:
    time.sleep(0.05)
time.sleep(1.3)
print("saved", *received, flush=True)
sys.exit(128 + received[0])
"""
_PARENT = """
import sys
from onmt_entmax.cli import ending
from onmt_entmax.cli.children import run_command
ending.CONSOLE = (sys.executable, "-c", sys.argv[1])
sys.exit(ending.ending("parent", lambda: run_command("train") or 0))
"""


def started(*command: str) -> subprocess.Popen[str]:
    """Start a parent whose child has said that it is ready."""
    process = subprocess.Popen(
        command, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT, start_new_session=True
    )
    assert any(line == "ready\n" for line in process.stdout)
    return process


@pytest.mark.parametrize("everybody", [True, False], ids=["terminal", "kill"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_child_save_and_ends_both(
    number: signal.Signals, everybody: bool
) -> None:
    """A terminal signals parent and child, `kill` the parent alone."""
    process = started(sys.executable, "-c", _PARENT, _CHILD)
    (os.killpg if everybody else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    told = [int(word) for word in out.split("saved")[1].split()]
    # Training does not wait to save after an interrupt that comes second.
    assert signal.SIGINT not in told[1:]
    assert "stopped; the same command continues" in err
    assert "Traceback" not in err


def test_a_killed_parent_lets_the_child_save() -> None:
    process = started(sys.executable, "-c", _PARENT, _CHILD)
    process.kill()
    assert process.stdout.read() == f"saved {signal.SIGTERM:d}\n"  # until the child has ended
    process.communicate()


def test_ignored_signals_stay_ignored() -> None:
    """As after `nohup`."""
    parent = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{_PARENT}"
    process = started(sys.executable, "-c", parent, _CHILD)
    os.kill(process.pid, signal.SIGHUP)
    time.sleep(1.5)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == f"saved {signal.SIGTERM:d}\n"


def test_a_failed_child_has_said_why() -> None:
    failing = "import sys; print('why', file=sys.stderr); sys.exit(3)"
    done = subprocess.run(
        [sys.executable, "-c", _PARENT, failing], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (3, "why\n")


def alive(words: str) -> list[int]:
    """Return the processes whose command line has these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:  # ended meanwhile
            pass
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_audit_saves_its_training_and_continues(tmp_path: Path, number: signal.Signals) -> None:
    rows = [f"{a}{b}{c}\t{a}{b}{c}d\tV" for a in "abc" for b in "abc" for c in "abc"]
    (tmp_path / "table").write_text("\n".join(rows) + "\n")
    command = [*CONSOLE, "audit", str(tmp_path / "table"), "--out", str(tmp_path / "out")]
    command += ["--folds", "2", "--updates", "100000"]
    run = tmp_path / "out/part-1/model"

    def stopped() -> str:
        process = subprocess.Popen(
            command, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT, start_new_session=True
        )
        log, end = run / "metrics.jsonl", time.monotonic() + 120
        before = log.stat().st_size if log.exists() else 0
        while not (log.exists() and log.stat().st_size > before):
            assert time.monotonic() < end
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        process.send_signal(number)
        _, told = process.communicate(timeout=120)  # until the child has ended too
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert not alive(str(tmp_path / "out/part-1"))
        return told

    assert "stopped at step" in stopped()
    [step] = run.glob("step_*/training/state.pt")
    assert f"continuing from {step.parent.parent}" in stopped()


@pytest.mark.slow
def test_distill_continues_after_a_signal(tmp_path: Path) -> None:
    (tmp_path / "train.src").write_text("lang=english +V +PST a b\nlang=english +V b\n")
    write_model(tmp_path / "model", 1)
    words = ["--train", "train.src", "--models", "model", "--each", "1", "--prob", "0.01"]
    command = [*CONSOLE, "distill", *words, "--out", "new"]
    process = subprocess.Popen(
        command, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT, cwd=tmp_path
    )
    assert any(line.startswith("$ onmt-entmax translate") for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert json.loads((tmp_path / "new.work/distill.json").read_text())["seed"] == 1
    assert subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT).returncode == 0
    assert (tmp_path / "new.src").exists()
