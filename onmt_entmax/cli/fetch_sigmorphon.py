"""Download the data of the CoNLL-SIGMORPHON 2018 shared task, task 1, or copy it from a folder.

    onmt-entmax prepare fetch-sigmorphon --out conll2018 --settings medium \\
        --languages english german
    onmt-entmax prepare fetch-sigmorphon --out conll2018 --from my-clone-of-conll2018

The files of github.com/sigmorphon/conll2018, folders `task1/all` and `task1/surprise`, go into one
folder, and their numbers of rows are checked (except for test sets). Complete files are not fetched
again: after an interruption, run the same command. The data is UniMorph's, licence CC BY-SA.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.inflection import SETTINGS, read_rows
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import count_lines, read_lines

REVISION = "490e2e0"
URL = f"https://raw.githubusercontent.com/sigmorphon/conll2018/{REVISION}"
FOLDERS = ("task1/all", "task1/surprise")
COUNTS = Path(__file__).resolve().parents[1] / "data" / "conll2018_counts.tsv"


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


def check(path: Path, name: str, rows: int | None) -> None:
    """Read a task file and check its number of rows, if that is known.

    Raises:
        UserError: a row is malformed, or there is another number of rows.
    """
    found = len(read_rows(path))
    if rows is not None and found != rows:
        raise UserError(f"{name}: {found} rows, expected {rows}; the copy is cut or another one")


def download(url: str, name: str, timeout: float) -> bytes:
    """Return the bytes of a file of the repository, from the first folder that has it.

    Raises:
        UserError: there is no connection, another response, or no such file.
    """
    for folder in FOLDERS:
        address = f"{url.rstrip('/')}/{folder}/{name}"
        try:
            with urllib.request.urlopen(address, timeout=timeout) as answer:
                content: bytes = answer.read()
            return content
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise UserError(f"{address}: {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error or type(error).__name__
            raise UserError(
                f"{address}: cannot download: {reason}; run again to continue, or give a local "
                "copy with --from FOLDER"
            ) from None
    raise UserError(f"{url}: no {name} in {' or '.join(FOLDERS)}")


def copy(source: Path, name: str) -> bytes:
    """Return the bytes of a file from a local folder or a clone of the repository.

    Raises:
        UserError: the file is not there, or cannot be read.
    """
    for folder in (source, *(source / each for each in FOLDERS)):
        path = folder / name
        if path.is_file():
            try:
                return path.read_bytes()
            except OSError as error:
                raise UserError(f"{path}: cannot read: {error.strerror}") from None
    raise UserError(f"{source}: no file {name}, here or in {' or '.join(FOLDERS)}")


def fetch(options: argparse.Namespace) -> None:
    """Fetch every file that is not there yet."""
    files = choose_files(options.languages, options.settings, options.test)
    if options.source and not options.source.is_dir():
        raise UserError(f"{options.source}: no such folder")
    new = 0
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, rows in tqdm(files.items(), unit="file", disable=not sys.stderr.isatty()):
            path = options.out / name
            if path.is_file() and rows in (None, count_lines(path)):
                if rows is None:
                    check(path, name, rows)
                continue
            content = (
                copy(options.source, name)
                if options.source
                else download(options.url, name, options.timeout)
            )
            part = options.out / f".{name}.part"
            try:
                part.write_bytes(content)
                check(part, name, rows)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            new += 1
    except OSError as error:
        raise UserError(f"{options.out}: cannot write: {error.strerror}") from None
    counted = f"{sum(rows or 0 for rows in files.values())} rows"
    if options.test:
        counted += " besides the test sets"
    print(f"{options.out}: {len(files)} files, {counted}; {new} fetched, the rest was there")


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
    add("--timeout", type=float, default=30.0, help="seconds to wait for a response (default 30)")
    fetch(parser.parse_args(arguments))
    return 0
