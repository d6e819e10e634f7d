"""Processes of a run that lose each other: each ends in a stated time, and says who is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch.distributed as dist

from onmt_entmax.parallel import contact
from onmt_entmax.parallel.contact import Contact
from tests.commands import ENVIRONMENT
from tests.test_processes import children, settings, torchrun
from tests.toy import write_config


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    """A store of this process; contacts give signs of life every tenth of a second."""
    monkeypatch.setattr(contact, "SILENCE", 1.5)
    monkeypatch.setattr(contact, "_BEAT", 0.1)
    monkeypatch.setattr(contact, "_TICK", 0.1)
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


class Silent(Contact):
    """A process that was stopped after it had met the others."""

    def _beat(self) -> None:
        self._ended.set()


def contacts(
    store: dist.TCPStore, count: int, last: type[Contact] = Contact
) -> tuple[list[Contact], list[str]]:
    """Return contacts that have met, and the messages of lost ones.

    Args:
        store: where they meet.
        count: of contacts.
        last: class of the last one.
    """
    messages: list[str] = []
    by_rank: dict[int, Contact] = {}

    def meet(rank: int) -> None:
        # Each process has its own connection.
        client = dist.TCPStore("localhost", store.port, is_master=False, wait_for_workers=False)
        kind = last if rank == count - 1 else Contact
        by_rank[rank] = kind(client, rank, count, messages.append)

    threads = [threading.Thread(target=meet, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [by_rank[rank] for rank in range(count)], messages


def test_processes_that_work_for_long_and_those_that_have_ended_are_not_lost(
    store: dist.TCPStore,
) -> None:
    (first, second, third), messages = contacts(store, 3)
    time.sleep(2)  # longer than SILENCE, without any other sign of life
    third.leave()
    time.sleep(2)
    assert messages == []
    first.leave()
    second.leave()


def test_a_process_that_gives_no_sign_is_named(store: dist.TCPStore) -> None:
    (first, _), messages = contacts(store, 2, Silent)
    first._watching.join(20)  # the thread ends when it has found a lost process
    (message,) = messages
    assert message.startswith("process 1 on ")
    assert "has not been heard of for 1.5 seconds" in message
    first.leave()


_TRAIN = """
import sys
from onmt_entmax.cli.ending import run_script
from onmt_entmax.cli.train import main
from onmt_entmax.parallel import contact
contact.SILENCE, contact._BEAT = 6, 0.5
run_script(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers through /proc")
@pytest.mark.parametrize("stopped", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_process_ends_when_the_other_one_is_stopped(tmp_path: Path, stopped: int) -> None:
    """As when the network between two machines is cut."""
    config = write_config(tmp_path, **settings(tmp_path / "run", train_steps=10**6))
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    command = torchrun(2, "-config", config, script=str(script))
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=-1, text=True)
    try:
        assert any(" 30/10" in line for line in process.stderr)
        workers = children(process.pid)
        by_rank = {int(_environment(pid)["RANK"]): pid for pid in workers}
        os.kill(by_rank[stopped], signal.SIGSTOP)
        line = next(line for line in process.stderr if "has not been heard of" in line)
    finally:
        for pid in children(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert line.startswith(f"train.py: error: process {stopped} on ")
    assert line.endswith(f"continue from the last checkpoint with -train_from {tmp_path}/run\n")


def _environment(pid: int) -> dict[str, str]:
    """Return the environment variables of a process."""
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(line.partition("=")[::2] for line in text.split("\0"))
