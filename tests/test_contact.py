"""Processes of a run that lose each other: each ends in a stated time, and says who is lost."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import torch.distributed as dist

from onmt_entmax.parallel import contact
from onmt_entmax.parallel.contact import Contact
from tests.torchrun import children, needs_proc, settings, training
from tests.toy import write_config

SILENCE = 1.5  # seconds after which a process is lost


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    """A store of this process; contacts give signs of life every tenth of a second."""
    monkeypatch.setattr(contact, "SILENCE", SILENCE)
    monkeypatch.setattr(contact, "_BEAT", 0.1)
    monkeypatch.setattr(contact, "_TICK", 0.1)
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


class Silent(Contact):
    """A process that was stopped after it had met the others."""

    def _beat(self) -> None:
        self._ended.set()


class Met(NamedTuple):
    """Contacts of processes that have met, by rank."""

    contacts: list[Contact]
    messages: list[str]
    """What they say of lost processes."""


def meet(store: dist.TCPStore, *kinds: type[Contact]) -> Met:
    """Let a contact of each class meet the others, each in a thread."""
    messages: list[str] = []
    by_rank: dict[int, Contact] = {}

    def join(rank: int, kind: type[Contact]) -> None:
        # Each process has its own connection.
        client = dist.TCPStore("localhost", store.port, is_master=False, wait_for_workers=False)
        by_rank[rank] = kind(client, rank, len(kinds), messages.append)

    threads = [threading.Thread(target=join, args=item) for item in enumerate(kinds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Met([by_rank[rank] for rank in range(len(kinds))], messages)


def test_processes_that_work_for_long_and_those_that_have_ended_are_not_lost(
    store: dist.TCPStore,
) -> None:
    (first, second, third), messages = meet(store, Contact, Contact, Contact)
    time.sleep(SILENCE + 0.5)  # without any other sign of life
    third.leave()
    time.sleep(SILENCE + 0.5)
    assert messages == []
    first.leave()
    second.leave()


def test_a_process_that_gives_no_sign_is_named(store: dist.TCPStore) -> None:
    (first, _), messages = meet(store, Contact, Silent)
    first._watching.join(20)  # the thread ends when it has found a lost process
    (message,) = messages
    assert message.startswith("process 1 on ")
    assert f"has not been heard of for {SILENCE} seconds" in message
    first.leave()


# --- trainings -------------------------------------------------------------------------------

# Trains as the command does, but a process is lost after six seconds.
_TRAIN = """
from onmt_entmax.cli.ending import run_script
from onmt_entmax.cli.train import main
from onmt_entmax.parallel import contact
contact.SILENCE, contact._BEAT = 6, 0.5
run_script(main)
"""


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment variables of a process."""
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(line.partition("=")[::2] for line in text.split("\0"))


@needs_proc
@pytest.mark.parametrize("stopped", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_process_ends_when_the_other_one_is_stopped(tmp_path: Path, stopped: int) -> None:
    """As when the network between two machines is cut."""
    config = write_config(tmp_path, **settings(tmp_path / "run", train_steps=10**6))
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    with training(config, str(script)) as process:
        by_rank = {int(environment_of(pid)["RANK"]): pid for pid in children(process.pid)}
        os.kill(by_rank[stopped], signal.SIGSTOP)
        line = next((line for line in process.stderr if "has not been heard of" in line), None)
    assert line is not None, "the training ended, and named no lost process"
    assert line.startswith(f"train.py: error: process {stopped} on ")
    assert line.endswith(f"continue from the last checkpoint with -train_from {tmp_path}/run\n")
