"""Files of corpora: downloaded, or from a folder, unpacked and checked."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import lzma
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files

# How to unpack a file, by the ending of its name.
UNPACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
}
SECONDS = 60  # that a server may take to answer
NOT_FOUND = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)

Get = Callable[[str], bytes]  # the content of a file, by name


class NotPublished(UserError):
    """The server has no such file."""


def download(address: str) -> bytes:
    """Return the content of a file.

    Raises:
        NotPublished: the server has no such file.
        UserError: it cannot be downloaded for another reason, such as a timeout.
    """
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, http.client.HTTPException, ValueError) as error:
        not_found = isinstance(error, urllib.error.HTTPError) and error.code in NOT_FOUND
        error_type = NotPublished if not_found else UserError
        raise error_type(
            f"{address}: cannot be downloaded ({error}); try again, or name a copy with --from"
        ) from None


def getter(source: Path | None, url: str, folders: Sequence[str] = ("",)) -> Get:
    """Return a function that reads files from a folder, or downloads them from below an address.

    In a folder, names of files may have wildcards, since copies may have other names. Below an
    address, names must be exact: it has no list of its files.

    Args:
        source: a folder, whose files may be compressed; None: download them.
        url: the address.
        folders: folders below either, which are searched one after the other.

    Raises:
        UserError: there is no such folder.
    """
    if source is None:
        return partial(_download_from, url, folders)
    if not source.is_dir():
        raise UserError(f"{source}: no such folder")
    return partial(_read_from, source, folders)


def _download_from(url: str, folders: Sequence[str], name: str) -> bytes:
    """Return the content of a file below an address, from the first folder that has it.

    Raises:
        NotPublished: no folder has it.
        UserError: it cannot be downloaded for another reason.
    """
    addresses = ["/".join(filter(None, (url, folder, name))) for folder in folders]
    for address in addresses[:-1]:
        try:
            return download(address)
        except NotPublished:  # it may be in the next one
            continue
    return download(addresses[-1])


def _read_from(source: Path, folders: Sequence[str], name: str) -> bytes:
    """Return the content of a file below a folder, unpacked.

    Args:
        source: the folder.
        folders: below it, to be searched one after the other.
        name: name of the file, without the ending of a compressed one; may have wildcards.

    Raises:
        UserError: there is no such file, or several, or it is damaged.
    """
    for folder in folders:
        for ending, unpack in UNPACKED.items():
            paths = sorted((source / folder).glob(name + ending))
            if len(paths) > 1:
                raise UserError(f"{source}: several files are {name}: {paths[0]}, {paths[1]}")
            if paths:
                return _unpacked(paths[0], unpack)
    raise UserError(f"{source}: no file {name}")


def _unpacked(path: Path, unpack: Callable[[bytes], bytes]) -> bytes:
    """Return the content of a file, unpacked.

    Raises:
        UserError: it cannot be read, or is damaged.
    """
    try:
        return unpack(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def check_sha256(content: bytes, sha256: str | None, name: str) -> None:
    """Refuse the content of a file whose checksum is another one than published.

    Args:
        content: content of the file.
        sha256: published checksum; None if it is not known, so that nothing is checked.
        name: name of the file, for the error.

    Raises:
        UserError: the checksum is another one.
    """
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{name}: has another checksum; the copy is cut, damaged or another one")


def fetch(out: Path, files: Mapping[str, str | None], get: Get) -> int:
    """Write the files that are missing or have other checksums; return how many were written.

    Args:
        out: folder to fill.
        files: the SHA-256 of each file by its name, or None if it is not known.
        get: returns the content of a file by its name.

    Raises:
        UserError: a file cannot be read or downloaded, or has another checksum than published.
    """
    fetched = 0
    for name, sha256 in tqdm(files.items(), unit="file", disable=None):
        path = out / name
        if path.is_file() and sha256 in (None, hashlib.sha256(path.read_bytes()).hexdigest()):
            continue
        content = get(name)
        check_sha256(content, sha256, name)
        write_files({path: content})
        fetched += 1
    return fetched
