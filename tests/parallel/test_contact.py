"""Heartbeats between the processes of a run: one that sends none for some time is named."""

import queue
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch.distributed as dist

from onmt_entmax.parallel import contact
from onmt_entmax.parallel.contact import Contact

SILENCE = 1.5  # seconds without a heartbeat, after which a process counts as lost
LONGER = SILENCE + 0.5

Messages = queue.SimpleQueue[str]  # about lost processes


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    """The store that the processes share; they send a heartbeat every tenth of a second."""
    monkeypatch.setattr(contact, "SILENCE", SILENCE)
    monkeypatch.setattr(contact, "_BEAT", 0.1)
    monkeypatch.setattr(contact, "_TICK", 0.1)
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


def connect(store: dist.TCPStore, rank: int, count: int, messages: Messages) -> Contact:
    """Return the contact of a process, by a connection of its own; wait for the other processes."""
    client = dist.TCPStore("localhost", store.port, is_master=False, wait_for_workers=False)
    return Contact(client, rank, count, messages.put)


@contextmanager
def meeting(store: dist.TCPStore, count: int, messages: Messages) -> Iterator[list[Contact]]:
    """Connect processes, each in a thread; at the end of the block all of them leave."""
    with ThreadPoolExecutor(count) as threads:
        ranks = range(count)
        contacts = list(threads.map(lambda rank: connect(store, rank, count, messages), ranks))
    yield contacts
    for member in contacts:
        member.leave()


def test_processes_that_send_heartbeats_are_not_lost(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    with meeting(store, 2, messages):
        time.sleep(LONGER)
        assert messages.empty()


def test_a_process_that_has_left_is_not_lost(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    with meeting(store, 3, messages) as (*_, last):
        last.leave()
        time.sleep(LONGER)
        assert messages.empty()


def test_a_process_that_sends_no_heartbeat_is_named_once(store: dist.TCPStore) -> None:
    messages: Messages = queue.SimpleQueue()
    # Process 1 writes the name of its host, for which the others wait, and then nothing more.
    store.set("host/1", "far-away")
    first = connect(store, 0, 2, messages)
    message = messages.get(timeout=20)
    assert message.startswith(
        f"process 1 on far-away has not been heard of for {SILENCE} seconds: "
    )
    first.leave()
    assert messages.empty()
