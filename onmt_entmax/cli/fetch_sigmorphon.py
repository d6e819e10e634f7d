"""Download the data of the CoNLL-SIGMORPHON 2018 shared task, task 1, or copy it from a folder.

    onmt-entmax prepare fetch-sigmorphon --out conll2018 --settings medium \\
        --languages english german
    onmt-entmax prepare fetch-sigmorphon --out conll2018 --from my-clone-of-conll2018

The files of github.com/sigmorphon/conll2018, folders `task1/all` and `task1/surprise`, go into one
folder, and are compared with their known checksums (except for test sets). Complete files are not
fetched again: after an interruption, run the same command. The data is UniMorph's (CC BY-SA).
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.data.download import Limits, NotThereError, download, is_there
from onmt_entmax.data.download import check as compare
from onmt_entmax.data.inflection import SETTINGS, read_rows, rows_of
from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import read_bytes, read_lines, text_lines, write_files
from onmt_entmax.rules import positive

REVISION = "490e2e0"
URL = f"https://raw.githubusercontent.com/sigmorphon/conll2018/{REVISION}"
FOLDERS = ("task1/all", "task1/surprise")
COUNTS = Path(__file__).resolve().parents[1] / "data" / "conll2018_counts.tsv"
CHECKSUMS = COUNTS.with_name("conll2018.sha256")
LARGEST = 1 << 24  # bytes of a file; the largest has 0.74 MB
SECONDS = 600  # longest download of one file


def expected_counts() -> dict[str, dict[str, int]]:
    """Return the number of rows by language and file (`train-low`, ..., `dev`)."""
    head, *lines = [line.split("\t") for line in read_lines(COUNTS)]
    return {
        language: {part: int(n) for part, n in zip(head[1:], numbers, strict=True) if n != "0"}
        for language, *numbers in lines
    }


def choose_files(
    languages: Sequence[str], settings: Sequence[str], test: bool = False
) -> dict[str, int | None]:
    """Return the files to fetch, each with its number of rows: `train-<setting>` and `dev`.

    Args:
        languages: names, or `all` for those that have a file of one of the settings.
        settings: low, medium or high.
        test: whether to fetch test sets too, whose number of rows is None, unknown.

    Raises:
        UserError: a setting or language is unknown, or a named language lacks a file.
    """
    counts = expected_counts()
    for setting in settings:
        if setting not in SETTINGS:
            raise UserError(
                f"no setting {setting!r} among {', '.join(SETTINGS)}{nearest(setting, SETTINGS)}"
            )
    trains = [f"train-{setting}" for setting in settings]
    if list(languages) != ["all"]:
        for language in languages:
            if language not in counts:
                raise UserError(f"no language {language!r}{nearest(language, counts)}")
            for train in trains:
                if train not in counts[language]:
                    raise UserError(f"{language} has no {train}; leave it out of --languages")
    chosen = counts if list(languages) == ["all"] else dict.fromkeys(languages)
    files: dict[str, int | None] = {}
    for language in chosen:
        own = [train for train in trains if train in counts[language]]
        for part in [*own, "dev"] if own else []:
            files[f"{language}-{part}"] = counts[language][part]
        if own and test:
            files[f"{language}-test"] = None
    return files


def known_checksums() -> dict[str, str]:
    """Return the SHA-256 by name, of all files but the test sets."""
    lines = (line.split("  ") for line in read_lines(CHECKSUMS))
    return {name: checksum for checksum, name in lines}


def check(content: bytes, name: str, sha256: str | None) -> None:
    """Compare a task file with its known checksum; without one, look at its rows.

    Raises:
        UserError: it is another file, or a row is malformed.
    """
    compare(content, sha256, name)
    if sha256 is None:
        rows_of(text_lines(io.BytesIO(content), name), name)


def from_repository(url: str, name: str, limits: Limits) -> bytes:
    """Return the content of a file of the repository, from the first folder that has it.

    Raises:
        UserError: it cannot be downloaded, or there is no such file.
    """
    for folder in FOLDERS:
        with suppress(NotThereError):
            return download(f"{url.rstrip('/')}/{folder}/{name}", limits)
    raise UserError(f"{url}: no {name} in {' or '.join(FOLDERS)}")


def copy(source: Path, name: str) -> bytes:
    """Return the content of a file from a local folder or a clone of the repository.

    Raises:
        UserError: the file is not there, or cannot be read.
    """
    for folder in (source, *(source / each for each in FOLDERS)):
        if (folder / name).is_file():
            return read_bytes(folder / name, LARGEST)
    raise UserError(f"{source}: no file {name}, here or in {' or '.join(FOLDERS)}")


def fetch(options: argparse.Namespace) -> None:
    """Fetch every file that is not there yet."""
    files = choose_files(options.languages, options.settings, options.test)
    if options.source and not options.source.is_dir():
        raise UserError(f"{options.source}: no such folder")
    limits = Limits(options.timeout, SECONDS, LARGEST)
    checksums = known_checksums()
    new = 0
    for name in tqdm(files, unit="file", disable=not sys.stderr.isatty()):
        if is_there(options.out / name, checksums.get(name), LARGEST):
            if name not in checksums:
                read_rows(options.out / name)
            continue
        content = (
            copy(options.source, name)
            if options.source
            else from_repository(options.url, name, limits)
        )
        check(content, name, checksums.get(name))
        write_files({options.out / name: content})
        new += 1
    rows = counted(sum(rows or 0 for rows in files.values()), "row")
    rows += " besides the test sets" * options.test
    found = f"{counted(len(files), 'file')}, {rows}"
    print(f"{options.out}: {found}; {new} fetched, the rest was there")


def main(arguments: Sequence[str]) -> int:
    """Fetch the data; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to fill")
    add("--settings", nargs="+", default=list(SETTINGS), help="low, medium, high (default: all)")
    add("--languages", nargs="+", default=["all"], help="names, or all (default)")
    add("--test", action="store_true", help="fetch the test sets too")
    add("--from", dest="source", type=Path, help="local copy to take the files from")
    add("--url", default=URL, help="address of the repository's files (default: GitHub)")
    add(
        "--timeout",
        type=following(positive(SECONDS)),
        default=30.0,
        help="seconds to wait for a response (default 30)",
    )
    fetch(parser.parse_args(arguments))
    return 0
