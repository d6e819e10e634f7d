"""Contact between the processes of a run: one that gives no sign of life is named in time."""

import queue
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch.distributed as dist

from onmt_entmax.parallel import contact
from onmt_entmax.parallel.contact import Contact

SILENCE = 1.5  # seconds after which a process is lost
LONGER = SILENCE + 0.5

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
    # Process 1 tells its host, by which it meets the others, and then gives no sign of life.
    store.set("host/1", "far-away")
    first = connect(store, 0, 2, messages)
    message = messages.get(timeout=20)
    assert message.startswith(
        f"process 1 on far-away has not been heard of for {SILENCE} seconds: "
    )
    first.leave()
    assert messages.empty()
