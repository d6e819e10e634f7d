"""SNLI, Stanford's corpus of sentence pairs (Bowman et al. 2015)."""

from __future__ import annotations

import argparse
import hashlib

from onmt_entmax.files import write_files
from tools.papers.archives import members
from tools.papers.corpus_files import getter

URL = "https://nlp.stanford.edu/projects/snli"
ARCHIVE = "snli_1.0.zip"


def fetch_snli(options: argparse.Namespace) -> None:
    """Fetch and unpack SNLI, and print the checksum of its archive.

    Its publishers name no checksum. With the printed one, users can compare their copies.

    Args:
        options: `out`, the folder to fill; `source`, a folder with a local copy, or None.

    Raises:
        UserError: the archive cannot be read or downloaded, or is damaged.
    """
    content = getter(options.source, URL)(ARCHIVE)
    get = members(ARCHIVE, content, "snli_1.0")
    files = [f"snli_1.0_{split}.jsonl" for split in ("train", "dev", "test")]
    write_files({options.out / file: get(file) for file in files})
    print(f"{ARCHIVE}: sha256 {hashlib.sha256(content).hexdigest()}")
    print(f"{options.out}: {', '.join(files)}")
