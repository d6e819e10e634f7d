"""Download a released model into the cache folder, where `onmt-entmax inflect` looks for it.

    onmt-entmax fetch-model https://HOST/inflection-86.zip --sha256 CHECKSUM

A release states the address and the checksum of each archive. There is no release of inflection-86
yet, but a checkout of the repository has the model in data/models. To make an archive for others:

    python -m zipfile -c inflection-86.zip data/models/inflection-86
    sha256sum inflection-86.zip

The address of an archive on this machine is file:///FOLDER/inflection-86.zip.
"""

import argparse
import re
from collections.abc import Sequence

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.data.download import DownloadError, Limits, check, download
from onmt_entmax.errors import UserError
from onmt_entmax.files.archives import MOST_BYTES, unpack
from onmt_entmax.files.released import cache_folder

# `response` and `seconds` are in seconds, `size` is in bytes. A slow connection takes an hour for a
# model. A larger archive would not be unpacked.
_LIMITS = Limits(response=30, seconds=3600, size=MOST_BYTES)


def checksum(text: str) -> str:
    """Return the value of `--sha256` in lower case.

    Raises:
        argparse.ArgumentTypeError: it is not a SHA-256 checksum.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError("must be 64 hexadecimal digits, as sha256sum prints them")
    return text.lower()


def main(arguments: Sequence[str]) -> int:
    """Fetch the model; return the exit status.

    Raises:
        UserError: the archive cannot be downloaded or unpacked, or has another checksum.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("address", metavar="ADDRESS", help="URL of the archive, a zip file")
    add(
        "--sha256",
        type=checksum,
        required=True,
        metavar="CHECKSUM",
        help="SHA-256 checksum of the archive",
    )
    options = parser.parse_args(arguments)
    try:
        content = download(options.address, _LIMITS)
    except DownloadError as error:
        raise UserError(f"{error}; run again, or use a local copy (-h says how)") from None
    check(content, options.sha256, options.address)
    folder = unpack(content, options.address, cache_folder())
    print(f"{folder}: fetched, {len(content) / 1e6:.1f} MB, checksums as released")
    return 0
