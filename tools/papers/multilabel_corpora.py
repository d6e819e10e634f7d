"""The multi-label data sets of Martins and Astudillo (2016), fetched from Mulan or scikit-learn."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from tools.papers.corpus_files import Get, fetch, getter
from tools.papers.reuters_corpus import write_reuters

MULAN_URL = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
# Known checksums (SHA-256) of published files, by name; the test files and cal500.arff have none.
MULAN_SHA256 = {
    "scene.xml": "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
    "scene-train.arff": "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
    "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
    "emotions-train.arff": "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98",
    "birds.xml": "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f",
    "birds-train.arff": "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36",
    "cal500.xml": "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
}
MULTILABEL = ("scene", "emotions", "birds", "cal500", "reuters")
CAL500_TRAINING = 400  # rows of cal500's training file
CAL500_SEED = 500  # of the choice of these rows; any number would do


def fetch_multilabel(name: str, options: argparse.Namespace) -> None:
    """Fetch a multi-label data set, one of `MULTILABEL`.

    Args:
        name: name of the data set.
        options: `out`, the folder to fill; `source`, a folder with a local copy, or None; `test`,
            whether to fetch the test set too.

    Raises:
        UserError: a file cannot be read or downloaded, or has another checksum than published.
    """
    parts = ["train", "test"] if options.test else ["train"]
    if name == "reuters":
        if options.source:
            raise UserError("reuters comes through scikit-learn, not from a folder: omit --from")
        write_reuters(options.out, parts)
    else:
        _fetch_from_mulan(name, options.out, parts, options.source)


def _fetch_from_mulan(name: str, out: Path, parts: Sequence[str], source: Path | None) -> None:
    """Fetch a list of labels and the rows of some parts, in ARFF."""
    names = [f"{name}.xml", *(f"{name}-{part}.arff" for part in parts)]
    get = getter(source, f"{MULAN_URL}/{name}")
    if name == "cal500":
        get = partial(_cal500, get)
    fetched = fetch(out, {file: MULAN_SHA256.get(file) for file in names}, get)
    print(f"{out}: {name}: {counted(len(names), 'file')}, {fetched} fetched")


def _cal500(get: Get, file: str) -> bytes:
    """Return a file of cal500, whose training and test rows are a fixed choice of all rows.

    Args:
        get: reads the published files, `cal500.xml` and `cal500.arff`.
        file: `cal500.xml`, `cal500-train.arff` or `cal500-test.arff`.

    Raises:
        UserError: the published file is cut short.
    """
    if file == "cal500.xml":
        return get(file)
    # If the file ends before @data, the mark and the data are empty.
    head, mark, data = re.split(rb"(?im)^(@data.*\n|\Z)", get("cal500.arff"), maxsplit=1)
    rows = [row for row in data.splitlines(keepends=True) if row.strip()]
    if len(rows) < CAL500_TRAINING:
        raise UserError(
            f"cal500.arff: cut short: {counted(len(rows), 'row')}, of which {CAL500_TRAINING} are "
            "for training; fetch it again"
        )
    training = set(random.Random(CAL500_SEED).sample(range(len(rows)), CAL500_TRAINING))
    is_training = file == "cal500-train.arff"
    chosen = (row for index, row in enumerate(rows) if (index in training) is is_training)
    return head + mark + b"".join(chosen)
