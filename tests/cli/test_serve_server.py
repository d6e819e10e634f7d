"""The server of `onmt-entmax serve`: addresses, clients that leave or idle, interrupts."""

import json
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import waitress
from waitress.server import TcpWSGIServer

from onmt_entmax.answering import Answering, LeftError
from onmt_entmax.cli import serve
from onmt_entmax.inflector import Inflection, Inflector, Question
from tests.cli.processes import PATIENCE, running, wait_until
from tests.cli.serving import (
    TASK,
    VERB,
    WORD,
    address_of,
    copy_with_verb_cells,
    running_server,
)
from tests.commands import CONSOLE


def post_request(query: Mapping[str, str]) -> bytes:
    """Return the bytes of a POST request with a query."""
    body = json.dumps(query).encode()
    head = b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Batches:
    """Batches of an inflector: counted, and held until they may go on.

    Attributes:
        sizes: of the batches that have begun.
        may_go_on: set to let them end.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.may_go_on = threading.Event()
        answers = Inflector.answers

        def held_answers(
            inflector: Inflector, questions: Sequence[Question], batch_size: int
        ) -> Iterator[Inflection]:
            self.sizes.append(min(len(questions), batch_size))
            assert self.may_go_on.wait(PATIENCE)
            return answers(inflector, questions, batch_size)

        monkeypatch.setattr(Inflector, "answers", held_answers)


class LeftServer(NamedTuple):
    """A server whose client left in the first of ten batches, after that batch."""

    server: TcpWSGIServer
    search_ended: bool
    """Whether the search noticed that its client had left."""
    batch_sizes: list[int]


@pytest.fixture
def left_server(
    inflection_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LeftServer]:
    batches = Batches(monkeypatch)
    answering = Answering(copy_with_verb_cells(inflection_model, tmp_path / "model", 640), TASK)
    answer = answering.answer
    search_ended = threading.Event()

    def watched_answer(query: object, left: Callable[[], bool]) -> dict[str, Any]:
        try:
            return answer(query, left)
        except LeftError:
            search_ended.set()
            raise

    monkeypatch.setattr(answering, "answer", watched_answer)
    with running_server(answering) as server:
        with socket.create_connection(("127.0.0.1", server.effective_port)) as connection:
            connection.sendall(post_request(VERB))
            wait_until(lambda: batches.sizes == [64])
        channels = server.active_channels.values()
        wait_until(lambda: not any(channel.connected for channel in channels))
        batches.may_go_on.set()
        yield LeftServer(server, search_ended.wait(PATIENCE), batches.sizes)


def test_a_search_ends_when_its_client_has_left(left_server: LeftServer) -> None:
    assert left_server.search_ended
    assert left_server.batch_sizes == [64]


def test_after_a_client_has_left_the_model_is_free_for_others(left_server: LeftServer) -> None:
    request = urllib.request.Request(
        f"{address_of(left_server.server)}answer",
        json.dumps(WORD).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        assert response.status == 200


def test_idle_connections_keep_nobody_out(inflection_model: Path) -> None:
    with running_server(Answering(inflection_model, TASK)) as server, ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.effective_port)))
        with urllib.request.urlopen(address_of(server), timeout=PATIENCE) as page:
            assert page.status == 200


def test_the_server_itself_bounds_a_request() -> None:
    """It would keep a larger body on the disk before the application sees it."""
    assert serve.SERVER["max_request_body_size"] == 1 << 15


@pytest.fixture
def bound_addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses at which servers listen, which end at once."""
    addresses: list[str] = []

    class EndingServer:
        def run(self) -> None:
            pass

    def create_server(app: object, sockets: list[socket.socket], **_: object) -> EndingServer:
        addresses.append(sockets[0].getsockname()[0])
        sockets[0].close()
        return EndingServer()

    monkeypatch.setattr(waitress, "create_server", create_server)
    return addresses


def test_by_default_the_server_listens_on_this_machine_alone(
    inflection_model: Path, bound_addresses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main([str(inflection_model), "--port", "0"]) == 0
    assert bound_addresses == ["127.0.0.1"]
    assert capsys.readouterr().err == ""


def test_an_address_that_others_reach_is_warned_of(
    inflection_model: Path, bound_addresses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main([str(inflection_model), "--port", "0", "--host", "0.0.0.0"]) == 0
    assert bound_addresses == ["0.0.0.0"]
    assert "can use the page: it asks for no password" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupt_ends_the_real_command(inflection_model: Path) -> None:
    with running(*CONSOLE, "serve", str(inflection_model), "--port", "0") as process:
        address, *_ = process.stdout.readline().split()
        with urllib.request.urlopen(address, timeout=PATIENCE) as page:
            assert b"outputs and proofs" in page.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
