"""Processes of a run that lose each other: each ends in a stated time, and says who is lost."""

import os
import queue
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch.distributed as dist

from onmt_entmax.parallel import contact
from onmt_entmax.parallel.contact import Contact
from tests.torchrun import children, needs_proc, settings, training
from tests.toy import write_config

SILENCE = 1.5  # seconds after which a process is lost
LONGER = SILENCE + 0.5

# --- contacts of this process ----------------------------------------------------------------

Messages = queue.SimpleQueue[str]  # about lost processes


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    """A store of this process; contacts give signs of life every tenth of a second."""
    monkeypatch.setattr(contact, "SILENCE", SILENCE)
    monkeypatch.setattr(contact, "_BEAT", 0.1)
    monkeypatch.setattr(contact, "_TICK", 0.1)
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


def connect(store: dist.TCPStore, rank: int, count: int, messages: Messages) -> Contact:
    """Return the contact of a process, which waits for the others; it has its own connection."""
    client = dist.TCPStore("localhost", store.port, is_master=False, wait_for_workers=False)
    return Contact(client, rank, count, messages.put)


@contextmanager
def meeting(store: dist.TCPStore, count: int, messages: Messages) -> Iterator[list[Contact]]:
    """Let the contacts of processes meet; in the end all leave."""
    with ThreadPoolExecutor(count) as threads:
        ranks = range(count)
        contacts = list(threads.map(lambda rank: connect(store, rank, count, messages), ranks))
    yield contacts
    for member in contacts:
        member.leave()


def test_processes_that_work_for_long_are_not_lost(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    with meeting(store, 2, messages):
        time.sleep(LONGER)
        assert messages.empty()


def test_a_process_that_has_ended_is_not_lost(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    with meeting(store, 3, messages) as (*_, last):
        last.leave()
        time.sleep(LONGER)
        assert messages.empty()


def test_a_process_that_gives_no_sign_is_named(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    store.set("host/1", "far-away")  # as a process does that meets this one; then it is stopped
    first = connect(store, 0, 2, messages)
    message = messages.get(timeout=20)
    assert message.startswith(
        f"process 1 on far-away has not been heard of for {SILENCE} seconds: "
    )
    first.leave()
    assert messages.empty()


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
@pytest.mark.parametrize(
    "stopped",
    [
        pytest.param(0, marks=pytest.mark.slow, id="the first process is stopped"),
        pytest.param(1, id="the second process is stopped"),
    ],
)
def test_a_process_ends_when_the_other_one_is_stopped(tmp_path: Path, stopped: int) -> None:
    """To the other one it looks as if the network between two machines were cut."""
    endless = 10**6
    config = write_config(tmp_path, **settings(tmp_path / "run", train_steps=endless))
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    with training(config, str(script)) as process:
        by_rank = {int(environment_of(pid)["RANK"]): pid for pid in children(process.pid)}
        os.kill(by_rank[stopped], signal.SIGSTOP)
        line = next((line for line in process.stderr if "has not been heard of" in line), None)
    assert line is not None, "the training ended, and named no lost process"
    assert line.startswith(f"train.py: error: process {stopped} on ")
    assert line.endswith(f"continue from the last checkpoint with -train_from {tmp_path}/run\n")
