"""The server of `onmt-entmax serve`: connections, requests, addresses and interrupts."""

import signal
import socket
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
import waitress
from waitress.server import TcpWSGIServer

from onmt_entmax.answering import Answering
from onmt_entmax.cli import serve
from tests.cli.processes import PATIENCE, running
from tests.cli.serving import TASK, address_of, running_server
from tests.commands import CONSOLE

LARGEST_REQUEST = 1 << 15  # bytes of a body, of which waitress admits less

# --- connections and requests ---


def test_idle_connections_keep_nobody_out(inflection_model: Path) -> None:
    with running_server(Answering(inflection_model, TASK)) as server, ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.effective_port)))
        with urllib.request.urlopen(address_of(server), timeout=PATIENCE) as page:
            assert page.status == 200


def status_of_request(server: TcpWSGIServer, length: int, body: bytes) -> bytes:
    """Send a request that says the length of its body, and this body; return the answer's status.

    The answer is not waited for longer than `PATIENCE`.
    """
    with socket.create_connection(("127.0.0.1", server.effective_port), PATIENCE) as client:
        client.sendall(
            b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % length
        )
        client.sendall(body)
        _, status, *_ = client.makefile("rb").readline().split()
    return status


def test_the_server_itself_refuses_a_large_request(inflection_model: Path) -> None:
    """It does so before the body comes, which it would write to the disk for the application."""
    with running_server(Answering(inflection_model, TASK)) as server:
        assert status_of_request(server, length=LARGEST_REQUEST, body=b"") == b"413"


def test_the_server_itself_passes_on_a_smaller_request(inflection_model: Path) -> None:
    """The application refuses it, since it is not JSON."""
    smaller = LARGEST_REQUEST - 1
    with running_server(Answering(inflection_model, TASK)) as server:
        assert status_of_request(server, length=smaller, body=b" " * smaller) == b"415"


# --- addresses ---


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


def test_an_address_that_others_reach_gives_a_warning(
    inflection_model: Path, bound_addresses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main([str(inflection_model), "--port", "0", "--host", "0.0.0.0"]) == 0
    assert bound_addresses == ["0.0.0.0"]
    assert "can use the page: it asks for no password" in capsys.readouterr().err


# --- interrupts ---


@pytest.mark.slow
def test_an_interrupt_ends_the_real_command(inflection_model: Path) -> None:
    with running(*CONSOLE, "serve", str(inflection_model), "--port", "0") as process:
        address, *_ = process.stdout.readline().split()
        with urllib.request.urlopen(address, timeout=PATIENCE) as page:
            assert b"outputs and proofs" in page.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
