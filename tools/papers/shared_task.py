"""Tables of CoNLL-SIGMORPHON 2018, task 1, whose checksums are in conll2018.tsv."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.tables import read_rows
from onmt_entmax.errors import UserError, counted, nearest
from tools.papers.corpus_files import fetch, getter

CONLL2018 = Path(__file__).with_name("conll2018.tsv")
CONLL_URL = "https://raw.githubusercontent.com/sigmorphon/conll2018/490e2e0"


class PublishedFile(NamedTuple):
    """A file of the shared task.

    Attributes:
        rows: number of rows.
        sha256: checksum.
    """

    rows: int
    sha256: str


def conll2018() -> dict[str, PublishedFile]:
    """Return the files of the shared task by name, such as `english-train-medium`."""
    _, *lines = CONLL2018.read_text(encoding="utf-8").splitlines()
    return {name: PublishedFile(int(rows), sha256) for name, rows, sha256 in map(str.split, lines)}


def fetch_sigmorphon(options: argparse.Namespace) -> None:
    """Fetch training and development files of the shared task, and print what was fetched.

    Raises:
        UserError: a language or a file is not there, or cannot be had.
    """
    published = conll2018()
    files = _files_of(options, published)
    folders = ["task1/all", "task1/surprise"]
    if options.source:  # a copy may have all files in one folder
        folders.append("")
    fetched = fetch(options.out, files, getter(options.source, CONLL_URL, folders))
    for name in files:
        if name.endswith("-test"):
            read_rows(options.out / name)  # which refuses another file
    # The rows of test sets are not published.
    rows = counted(sum(published[name].rows for name in files if name in published), "row")
    if options.test:
        rows += " besides the test sets"
    print(
        f"{options.out}: {counted(len(files), 'file')}, {rows}; "
        f"{fetched} fetched, the rest was there"
    )


def _files_of(
    options: argparse.Namespace, published: Mapping[str, PublishedFile]
) -> dict[str, str | None]:
    """Return the files of the languages and settings that the options name, with checksums.

    Raises:
        UserError: there is no such language, or it has not all settings.
    """
    languages = dict.fromkeys(re.sub("-(train-.*|dev)$", "", name) for name in published)
    takes_all = options.languages == ["all"]  # also languages that lack a setting
    trains = [f"train-{setting}" for setting in options.settings]
    files: dict[str, str | None] = {}
    for language in languages if takes_all else options.languages:
        if language not in languages:
            raise UserError(f"no language {language!r}{nearest(language, languages)}")
        lacking = [train for train in trains if f"{language}-{train}" not in published]
        if lacking and not takes_all:
            raise UserError(f"{language} has no {lacking[0]}; leave it out of --languages")
        present = [train for train in trains if train not in lacking]
        if not present:
            continue
        for part in (*present, "dev"):
            name = f"{language}-{part}"
            files[name] = published[name].sha256
        if options.test:
            files[f"{language}-test"] = None
    return files
