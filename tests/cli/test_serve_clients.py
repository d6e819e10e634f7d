"""The server of `onmt-entmax serve`: a search ends when its client leaves."""

import json
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from waitress.server import TcpWSGIServer

from onmt_entmax.answering import Answering, ClientGoneError, never_gone
from onmt_entmax.inflector import Inflection, Inflector, Question
from tests.cli.processes import PATIENCE, wait_until
from tests.cli.serving import TASK, VERB, WORD, address_of, copy_with_verb_cells, running_server

BATCH = 64  # cells of a paradigm that a page's search answers together


def post_request(query: Mapping[str, str]) -> bytes:
    """Return the bytes of a POST request with a query."""
    body = json.dumps(query).encode()
    head = b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class HeldBatches:
    """Batches of inflectors, which are counted and end only when they may.

    Attributes:
        sizes: sizes of the batches that have begun.
        may_end: set to let them end.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.may_end = threading.Event()
        answers = Inflector.answers

        def held_answers(
            inflector: Inflector, questions: Sequence[Question], batch_size: int
        ) -> Iterator[Inflection]:
            self.sizes.append(min(len(questions), batch_size))
            assert self.may_end.wait(PATIENCE)
            return answers(inflector, questions, batch_size)

        monkeypatch.setattr(Inflector, "answers", held_answers)


class WatchedAnswering(Answering):
    """Answers that note whether a search ended because its client had left."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, TASK)
        self.noticed = threading.Event()

    def answer(self, query: object, left: Callable[[], bool] = never_gone) -> dict[str, Any]:
        try:
            return super().answer(query, left)
        except ClientGoneError:
            self.noticed.set()
            raise


def no_client_is_connected(server: TcpWSGIServer) -> bool:
    """Whether the server, which runs in another thread, has noticed that all clients left."""
    channels = list(server.active_channels.values())  # a copy, since that thread deletes them
    return not any(channel.connected for channel in channels)


class LeftServer(NamedTuple):
    """A server after the first of ten batches, during which its client left."""

    server: TcpWSGIServer
    search_ended: bool
    """Whether the search noticed that its client had left."""
    batch_sizes: list[int]


@pytest.fixture
def left_server(
    inflection_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LeftServer]:
    batches = HeldBatches(monkeypatch)
    model = copy_with_verb_cells(inflection_model, tmp_path / "model", count=10 * BATCH)
    answering = WatchedAnswering(model)
    with running_server(answering) as server:
        with socket.create_connection(("127.0.0.1", server.effective_port)) as client:
            client.sendall(post_request(VERB))
            wait_until(lambda: batches.sizes == [BATCH])
        # The client has left, while its first batch is held.
        wait_until(lambda: no_client_is_connected(server))
        batches.may_end.set()
        yield LeftServer(server, answering.noticed.wait(PATIENCE), batches.sizes)


def test_a_search_ends_when_its_client_has_left(left_server: LeftServer) -> None:
    assert left_server.search_ended
    assert left_server.batch_sizes == [BATCH]


def test_after_a_client_has_left_the_model_is_free_for_others(left_server: LeftServer) -> None:
    request = urllib.request.Request(
        f"{address_of(left_server.server)}answer",
        data=json.dumps(WORD).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert response.status == 200
