"""Download files: bounded in size and time, and compared with known checksums."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from onmt_entmax.errors import UserError

_BLOCK = 2**16  # bytes that are read at a time


class DownloadError(UserError):
    """A file that cannot be downloaded: perhaps only now, or only from this address."""


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


def download(address: str, limits: Limits) -> bytes:
    """Return the content of a file.

    Args:
        address: an encrypted connection (https) is never continued without encryption.
        limits: bounds of the download.

    Raises:
        UserError: the address has no scheme, such as https.
        DownloadError: the server cannot be reached or refuses, or a limit is exceeded.
    """
    if "://" not in address:
        raise UserError(
            f"{address}: is no address: it begins with https://, or with file:// for a local file"
        )
    try:
        with urllib.request.urlopen(address, timeout=limits.response) as response:
            if address.startswith("https:") and not response.geturl().startswith("https:"):
                raise ValueError(f"leads to {response.geturl()}, which is not encrypted")
            return _content(response, address.rsplit("/", 1)[-1], limits)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(f"{address}: cannot download: {_reason(error)}") from None


def _content(response: Any, name: str, limits: Limits) -> bytes:
    """Return the content of a response, with a bar of progress on a terminal.

    Args:
        response: what `urlopen` returned; its type depends on the scheme of the address.
        name: the name of the file, for the bar.
        limits: bounds of the download.

    Raises:
        ValueError: a limit was reached, or the connection was cut.
    """
    content = bytearray()
    end = time.monotonic() + limits.seconds
    total = int(response.headers.get("Content-Length") or 0)  # 0: not known
    with tqdm(total=total, unit="B", unit_scale=True, desc=name, disable=None) as bar:
        while block := response.read1(_BLOCK):
            content += block
            bar.update(len(block))
            if len(content) > limits.size:
                raise ValueError(f"is larger than {limits.size:,} bytes")
            if time.monotonic() > end:
                raise ValueError(f"not complete after {limits.seconds:g} seconds")
    if len(content) < total:  # `read1` ends as if this were all
        raise ValueError(f"was cut after {len(content):,} of {total:,} bytes")
    return bytes(content)


def _reason(error: Exception) -> object:
    """Return why a download failed, for a message."""
    if isinstance(error, urllib.error.HTTPError):
        return error  # its text has the status, its `reason` has not
    return getattr(error, "reason", "") or error or type(error)


def check(content: bytes, sha256: str, name: str) -> None:
    """Check that content has its known checksum.

    Args:
        content: content of the file that was downloaded.
        sha256: the checksum, in hexadecimal digits.
        name: the name of the file, for the error.

    Raises:
        UserError: the content has another checksum.
    """
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(
            f"{name}: has another checksum than the known file; the copy is cut, damaged or "
            "another one"
        )
