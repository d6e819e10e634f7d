"""Download a released model into the cache folder, where `onmt-entmax inflect` looks for it.

    onmt-entmax fetch-model https://HOST/inflection-86.zip --sha256 CHECKSUM

A release states address and checksum of its archives. There is no release of inflection-86 yet: a
checkout of the repository has the model in data/models, and this makes an archive for others:

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

_LIMITS = Limits(response=30, seconds=3600, size=MOST_BYTES)


def checksum(text: str) -> str:
    """Read the value of `--sha256`."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError("must be 64 hexadecimal digits, as sha256sum prints them")
    return text.lower()


def main(arguments: Sequence[str]) -> int:
    """Fetch the model; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("address", metavar="ADDRESS", help="of the archive, a zip file")
    add("--sha256", type=checksum, required=True, metavar="CHECKSUM", help="of the archive")
    options = parser.parse_args(arguments)
    try:
        content = download(options.address, _LIMITS)
    except DownloadError as error:
        raise UserError(f"{error}; run again, or use a local copy (-h says how)") from None
    check(content, options.sha256, options.address)
    folder = unpack(content, options.address, cache_folder())
    print(f"{folder}: fetched, {len(content) / 1e6:.1f} MB, checksums as released")
    return 0
