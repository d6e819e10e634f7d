"""Downloads from a server on this machine: bounds, checksums, and refused addresses."""

import functools
import hashlib
import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from onmt_entmax.data.download import Limits, check, download
from onmt_entmax.errors import UserError

LIMITS = Limits(response=10, seconds=20, size=100_000)
CONTENT = b"content"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by path, as the methods say.

    Args:
        done: tells the path `/for-ever` that the test is over.
        arguments: those of the server.
    """

    def __init__(self, done: threading.Event, *arguments: object) -> None:
        self.done = done
        super().__init__(*arguments)

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/file":
            self._send(200, CONTENT)
        elif self.path == "/elsewhere":
            self._send(302, b"", Location="/file")
        elif self.path == "/cut":
            self._send(200, CONTENT, **{"Content-Length": "9"})
        elif self.path == "/large":
            self._send(200, b"x" * (2 * LIMITS.size))
        elif self.path == "/for-ever":
            self._send_bytes_until_done()
        else:
            self._send(500 if self.path == "/broken" else 404, b"")

    def _send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _send_bytes_until_done(self) -> None:
        """Send a byte at a time, each within the limit of a response."""
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        while not self.done.wait(0.01):
            self.wfile.write(b"x")


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with a `Handler`, which is reached without a proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    done = threading.Event()
    handler = functools.partial(Handler, done)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handle_error = lambda *_: None  # of clients that leave; it would print a traceback
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        done.set()
        server.shutdown()


@pytest.mark.parametrize("path", ["file", "elsewhere"], ids=["direct", "redirected"])
def test_a_file_is_downloaded_whole(url: str, path: str) -> None:
    assert download(f"{url}/{path}", LIMITS) == CONTENT


def test_a_connection_that_is_cut_gives_no_file(url: str) -> None:
    with pytest.raises(UserError, match="/cut: cannot download: was cut after 7 of 9 bytes"):
        download(f"{url}/cut", LIMITS)


def test_a_file_larger_than_the_limit_is_refused(url: str) -> None:
    with pytest.raises(UserError, match=r"/large: .* is larger than 100,000"):
        download(f"{url}/large", LIMITS)


def test_a_local_file_has_the_same_limit() -> None:
    with pytest.raises(UserError, match=r"/dev/zero: .* is larger than 100,000"):
        download("file:///dev/zero", LIMITS)


def test_a_download_ends_at_its_limit_of_time(url: str) -> None:
    started = time.monotonic()
    with pytest.raises(UserError, match=r"for-ever: .* not complete after 0.5 seconds"):
        download(f"{url}/for-ever", Limits(response=10, seconds=0.5, size=100_000))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("path", "message"), [("none", "404.* Not Found"), ("broken", "500")])
def test_the_status_of_a_refusal_is_in_the_error(url: str, path: str, message: str) -> None:
    with pytest.raises(UserError, match=rf"/{path}: cannot download: .*{message}"):
        download(f"{url}/{path}", LIMITS)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("http://[", "Invalid IPv6 URL", id="an open bracket"),
        pytest.param("http://127.0.0.1:1/", "Connection refused", id="a port without a server"),
        pytest.param("http://a b/", "URL can't contain control characters", id="a space"),
        pytest.param("x://y", "unknown url type: x", id="an unknown scheme"),
    ],
)
def test_an_address_that_cannot_be_opened_is_an_error(address: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"cannot download: .*{reason}"):
        download(address, LIMITS)


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(UserError, match="host/file: is no address: it begins with https://"):
        download("host/file", LIMITS)


class UnencryptedAnswer:
    """The answer of a server that leads to an address without encryption.

    A stub: the tests' server has no certificate.
    """

    def __enter__(self) -> "UnencryptedAnswer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def geturl(self) -> str:
        return "http://host/file"


def test_an_encrypted_address_does_not_lead_to_one_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: UnencryptedAnswer())
    with pytest.raises(UserError, match="leads to http://host/file, which is not encrypted"):
        download("https://host/file", LIMITS)


def test_content_of_the_right_checksum_is_taken() -> None:
    check(CONTENT, CHECKSUM, "file")


def test_content_of_another_checksum_is_refused() -> None:
    with pytest.raises(UserError, match="file: has another checksum"):
        check(CONTENT.upper(), CHECKSUM, "file")
