"""Download the Stanford Natural Language Inference corpus (Bowman et al. 2015), version 1.0.

    onmt-entmax prepare fetch-snli --out snli
    onmt-entmax prepare fetch-snli --out snli --from snli_1.0.zip

Writes snli_1.0_{train,dev,test}.jsonl and SHA256SUMS, which `sha256sum -c` reads. Prints the
archive's checksum; whoever knows it gives it as --sha256. The data is under CC BY-SA 4.0.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checksums import LIST_NAME, write_list
from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.cli.fetch_model import checksum
from onmt_entmax.data.download import Limits, check, download
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_bytes, replaced_when_done

URL = "https://nlp.stanford.edu/projects/snli/snli_1.0.zip"
FOLDER = "snli_1.0"  # in the archive
FILES = tuple(f"snli_1.0_{part}.jsonl" for part in ("train", "dev", "test"))
LARGEST = 1 << 28  # bytes of the archive, which has about 95 MB
LARGEST_FILE = 1 << 30  # bytes of a file in it
LIMITS = Limits(response=30, seconds=3600, size=LARGEST)


def unpack(content: bytes, name: str, out: Path) -> None:
    """Write the three files of the archive to a folder, all or none.

    Args:
        content: of the archive.
        name: of the archive, for errors.
        out: the folder.

    Raises:
        UserError: it is no such archive, or a file cannot be written.
    """
    with (
        replaced_when_done([out / file for file in FILES]) as files,
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        try:
            entries = [archive.getinfo(f"{FOLDER}/{file}") for file in FILES]
        except KeyError as error:
            raise UserError(f"{name}: is not SNLI 1.0 ({error.args[0]})") from None
        if max(entry.file_size for entry in entries) > LARGEST_FILE:
            raise UserError(f"{name}: a file in it has more than {LARGEST_FILE:,} bytes")
        for entry, file in zip(entries, files, strict=True):
            with archive.open(entry) as source:  # ends at the size that was checked
                shutil.copyfileobj(source, file.buffer)
    write_list(out)


def main(arguments: Sequence[str]) -> int:
    """Fetch the corpus; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="new folder")
    add("--from", dest="source", type=Path, metavar="FILE", help="local copy of the archive")
    add("--url", default=URL, help=f"address of the archive (default: {URL})")
    add("--sha256", type=checksum, metavar="CHECKSUM", help="of the archive, if you know it")
    options = parser.parse_args(arguments)
    if options.out.exists():
        raise UserError(f"{options.out}: is there already; name another folder")
    name = str(options.source or options.url)
    if options.source:
        content = read_bytes(options.source, LARGEST)
    else:
        content = download(options.url, LIMITS, progress=True)
    check(content, options.sha256, name)
    unpack(content, name, options.out)
    print(f"{name}: sha256 {hashlib.sha256(content).hexdigest()}")
    print(f"{options.out}: {counted(len(FILES), 'file')}, listed in {LIST_NAME}")
    return 0
