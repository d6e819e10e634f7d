"""Tables of CoNLL-SIGMORPHON 2018, task 1, whose checksums are in conll2018.tsv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.inflection_rows import read_rows
from onmt_entmax.errors import UserError, counted, nearest
from tools.papers.corpus_files import fetch, getter

CONLL2018 = Path(__file__).with_name("conll2018.tsv")
CONLL_URL = "https://raw.githubusercontent.com/sigmorphon/conll2018/490e2e0"


class PublishedFile(NamedTuple):
    """A training or development file of the shared task.

    Attributes:
        rows: number of rows.
        sha256: checksum.
    """

    rows: int
    sha256: str


Published = Mapping[str, Mapping[str, PublishedFile]]
"""Files by language and part, see `conll2018`"""


class Selection(NamedTuple):
    """Files of the shared task to fetch; development files always belong to them.

    Attributes:
        languages: such as `english`; None: all that have one of the settings.
        settings: of the training files: `low`, `medium` or `high`.
        test: whether to fetch the test sets too.
    """

    languages: Sequence[str] | None
    settings: Sequence[str]
    test: bool = False


def conll2018() -> dict[str, dict[str, PublishedFile]]:
    """Return the files of each language by their part: `train-SETTING` or `dev`."""
    _, *lines = CONLL2018.read_text(encoding="utf-8").splitlines()
    published: dict[str, dict[str, PublishedFile]] = {}
    for name, rows, sha256 in map(str.split, lines):
        # A language may have hyphens, and so has `train-SETTING`.
        language, is_training, setting = name.partition("-train-")
        part = f"train-{setting}" if is_training else "dev"
        files = published.setdefault(language.removesuffix("-dev"), {})
        files[part] = PublishedFile(int(rows), sha256)
    return published


def fetch_sigmorphon(out: Path, source: Path | None, selection: Selection) -> None:
    """Fetch files of the shared task, and print what was fetched.

    Args:
        out: folder to fill.
        source: folder with a local copy; None downloads.
        selection: the files.

    Raises:
        UserError: a language or a file is not there, or cannot be had.
    """
    published = conll2018()
    if selection.languages is None:
        chosen = dict(_parts_of_all(published, selection.settings))
    else:
        chosen = dict(_parts_of_named(published, selection.languages, selection.settings))
    sha256s: dict[str, str | None] = {}
    rows = 0
    for language, parts in chosen.items():
        for part in dict.fromkeys(parts):  # a setting may be named twice
            file = published[language][part]
            sha256s[f"{language}-{part}"] = file.sha256
            rows += file.rows
        if selection.test:
            sha256s[f"{language}-test"] = None  # not published
    folders = ["task1/all", "task1/surprise"]
    if source:  # a copy may have all files in one folder
        folders.append("")
    fetched = fetch(out, sha256s, getter(source, CONLL_URL, folders))
    if selection.test:
        _check_test_sets(out, chosen)
    besides = " besides the test sets" if selection.test else ""
    print(
        f"{out}: {counted(len(sha256s), 'file')}, {counted(rows, 'row')}{besides}; "
        f"{fetched} fetched, the rest was there"
    )


def _parts_of_all(published: Published, settings: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each language that has a training file of these settings, with the parts it has."""
    for language, files in published.items():
        trainings = [f"train-{setting}" for setting in settings if f"train-{setting}" in files]
        if trainings:
            yield language, [*trainings, "dev"]


def _parts_of_named(
    published: Published, languages: Sequence[str], settings: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the languages that the user names, with their parts.

    Raises:
        UserError: there is no such language, or it lacks one of the settings.
    """
    trainings = [f"train-{setting}" for setting in settings]
    for language in languages:
        if language not in published:
            raise UserError(f"no language {language!r}{nearest(language, published)}")
        for training in trainings:
            if training not in published[language]:
                raise UserError(f"{language} has no {training}; leave it out of --languages")
        yield language, [*trainings, "dev"]


def _check_test_sets(out: Path, languages: Iterable[str]) -> None:
    """Read the test sets, which have no checksums that would tell a wrong file.

    Raises:
        UserError: a file is no table of the shared task.
    """
    for language in languages:
        read_rows(out / f"{language}-test")
