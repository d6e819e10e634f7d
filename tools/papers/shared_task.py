"""Tables of CoNLL-SIGMORPHON 2018, task 1, whose checksums are in conll2018.tsv."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from onmt_entmax.cli.tables import read_rows
from onmt_entmax.errors import UserError, counted, nearest
from tools.papers.corpus_files import fetch, getter

CONLL2018 = Path(__file__).with_name("conll2018.tsv")
CONLL_URL = "https://raw.githubusercontent.com/sigmorphon/conll2018/490e2e0"


def conll2018() -> dict[str, tuple[int, str]]:
    """Return rows and SHA-256 of the files of the shared task, such as `english-train-medium`."""
    _, *lines = CONLL2018.read_text(encoding="utf-8").splitlines()
    return {name: (int(rows), sha256) for name, rows, sha256 in map(str.split, lines)}


def sigmorphon(options: argparse.Namespace) -> None:
    """Fetch training and development files of the shared task.

    Raises:
        UserError: a language or a file is not there, or cannot be had.
    """
    known = conll2018()
    files = _files_of(options, known)
    folders = ["task1/all", "task1/surprise"]
    if options.source:  # a copy may have all files in one folder
        folders.append("")
    fetched = fetch(options.out, files, getter(options.source, CONLL_URL, folders))
    for name in files:
        if name.endswith("-test"):
            read_rows(options.out / name)  # which refuses another file
    rows = counted(sum(known[name][0] for name in files if name in known), "row")
    if options.test:
        rows += " besides the test sets"
    print(
        f"{options.out}: {counted(len(files), 'file')}, {rows}; "
        f"{fetched} fetched, the rest was there"
    )


def _files_of(
    options: argparse.Namespace, known: Mapping[str, tuple[int, str]]
) -> dict[str, str | None]:
    """Return the files of the languages and settings that the options name, with checksums.

    Raises:
        UserError: there is no such language, or it has not all settings.
    """
    languages = dict.fromkeys(re.sub("-(train-.*|dev)$", "", name) for name in known)
    takes_all = options.languages == ["all"]  # also languages that lack a setting
    trains = [f"train-{setting}" for setting in options.settings]
    files: dict[str, str | None] = {}
    for language in languages if takes_all else options.languages:
        if language not in languages:
            raise UserError(f"no language {language!r}{nearest(language, languages)}")
        lacking = [train for train in trains if f"{language}-{train}" not in known]
        if lacking and not takes_all:
            raise UserError(f"{language} has no {lacking[0]}; leave it out of --languages")
        present = [train for train in trains if train not in lacking]
        if not present:
            continue
        for part in (*present, "dev"):
            _, sha256 = known[f"{language}-{part}"]
            files[f"{language}-{part}"] = sha256
        if options.test:
            files[f"{language}-test"] = None
    return files
