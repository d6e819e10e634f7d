"""Download files: bounded in size and time, and compared with known checksums."""

from __future__ import annotations

import hashlib
import http.client
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_bytes

_BLOCK = 1 << 16
_REMEDY = "run again, or use a local copy (-h says how)"


class DownloadError(UserError):
    """A file that cannot be downloaded; the message names its address."""


class NotThereError(DownloadError):
    """The server has no such file."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a download.

    Attributes:
        response: seconds to wait for a response, and for more of it.
        seconds: longest duration of the whole download.
        size: largest size in bytes.
    """

    response: float
    seconds: float
    size: int


def download(address: str, limits: Limits, progress: bool = False) -> bytes:
    """Return the content of a file.

    Args:
        address: an encrypted connection (https) is never continued without encryption.
        limits: bounds of the download.
        progress: whether to show a bar on a terminal.

    Raises:
        NotThereError: the server has no such file.
        DownloadError: there is no connection, another response, or a limit was reached.
    """
    outcome: list[bytes | BaseException] = []

    def work() -> None:
        try:
            outcome.append(_read(address, limits, progress))
        except BaseException as error:
            outcome.append(error)

    # Looking up an address and reading the headers have no time limit of their own.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limits.seconds)
    if not outcome:
        raise DownloadError(
            f"{address}: cannot download: not complete after {limits.seconds:g} seconds; {_REMEDY}"
        )
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _read(address: str, limits: Limits, progress: bool) -> bytes:
    if "://" not in address:
        raise DownloadError(
            f"{address}: is no address: it begins with https://, or with file:// for a local file"
        )
    content = bytearray()
    try:
        with urllib.request.urlopen(address, timeout=limits.response) as answer:
            if address.startswith("https:") and not answer.geturl().startswith("https:"):
                raise DownloadError(
                    f"{address}: leads to {answer.geturl()}, which is not encrypted"
                )
            total = int(answer.headers.get("Content-Length") or 0) or None
            name = address.rsplit("/", 1)[-1]
            hidden = None if progress else True
            with tqdm(total=total, unit="B", unit_scale=True, desc=name, disable=hidden) as bar:
                while block := answer.read(_BLOCK):
                    content += block
                    bar.update(len(block))
                    if len(content) > limits.size:
                        raise DownloadError(f"{address}: is larger than {limits.size:,} bytes")
            # `read` returns what came before a connection was cut.
            if total is not None and len(content) < total:
                raise DownloadError(
                    f"{address}: was cut after {len(content):,} of {total:,} bytes; {_REMEDY}"
                )
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, DownloadError):
            raise
        if isinstance(error, urllib.error.HTTPError):
            kind = NotThereError if error.code == 404 else DownloadError
            raise kind(f"{address}: cannot download: {error.code} {error.reason}") from None
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise DownloadError(f"{address}: cannot download: {reason}; {_REMEDY}") from None
    return bytes(content)


def is_there(path: Path, sha256: str | None, largest: int) -> bool:
    """Return whether a file of at most `largest` bytes is there and has the checksum, if any.

    Raises:
        FileError: it cannot be read, or is larger.
    """
    if not path.is_file():
        return False
    try:
        check(read_bytes(path, largest), sha256, str(path))
    except DownloadError:  # damaged
        return False
    return True


def check(content: bytes, sha256: str | None, name: str) -> None:
    """Compare content with its known checksum; None: it has none.

    Raises:
        DownloadError: the checksum is another one.
    """
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise DownloadError(
            f"{name}: has another checksum than the known file; the copy is cut, damaged or "
            "another one"
        )
