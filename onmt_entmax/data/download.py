"""Download files: bounded in size and time, and compared with known checksums."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from tqdm import tqdm

from onmt_entmax.errors import UserError


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
        UserError: there is no connection, another response, or a limit was reached.
    """
    if "://" not in address:
        raise UserError(
            f"{address}: is no address: it begins with https://, or with file:// for a local file"
        )
    content, end = bytearray(), time.monotonic() + limits.seconds
    try:
        with urllib.request.urlopen(address, timeout=limits.response) as answer:
            if address.startswith("https:") and not answer.geturl().startswith("https:"):
                raise ValueError(f"leads to {answer.geturl()}, which is not encrypted")
            total = int(answer.headers.get("Content-Length") or 0)
            name = address.rsplit("/", 1)[-1]
            with tqdm(total=total, unit="B", unit_scale=True, desc=name, disable=None) as bar:
                while block := answer.read1(2**16):
                    content += block
                    bar.update(len(block))
                    if len(content) > limits.size:
                        raise ValueError(f"is larger than {limits.size:,} bytes")
                    if time.monotonic() > end:
                        raise ValueError(f"not complete after {limits.seconds:g} seconds")
            if len(content) < total:  # `read` returns what came before a connection was cut
                raise ValueError(f"was cut after {len(content):,} of {total:,} bytes")
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason: object = error
        if not isinstance(error, urllib.error.HTTPError):
            reason = getattr(error, "reason", "") or error or type(error)
        raise UserError(
            f"{address}: cannot download: {reason}; run again, or use a local copy (-h says how)"
        ) from None
    return bytes(content)


def check(content: bytes, sha256: str, name: str) -> None:
    """Compare content with its known checksum.

    Raises:
        UserError: the checksum is another one.
    """
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(
            f"{name}: has another checksum than the known file; the copy is cut, damaged or "
            "another one"
        )
