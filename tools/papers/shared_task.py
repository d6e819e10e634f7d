"""Tables of CoNLL-SIGMORPHON 2018, task 1, whose checksums are in conll2018.tsv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Files of the shared task to fetch; development files are always among them.

    Attributes:
        languages: such as `english`; None: all that have one of the settings.
        settings: sizes of the training files: `low`, `medium` or `high`.
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
        UserError: a language or file does not exist, or a file cannot be read or downloaded.
    """
    published = _selected(conll2018(), selection)
    test_sets = [f"{language}-test" for language in published] if selection.test else []
    files = {
        f"{language}-{part}": file
        for language, parts in published.items()
        for part, file in parts.items()
    }
    sha256s: dict[str, str | None] = {name: file.sha256 for name, file in files.items()}
    sha256s |= dict.fromkeys(test_sets)  # checksums of test sets are not published
    fetched = fetch(out, sha256s, getter(source, CONLL_URL, _folders(source)))
    for name in test_sets:
        read_rows(out / name)  # refuses another file, since there is no checksum to compare
    rows = sum(file.rows for file in files.values())
    besides = " besides the test sets" if test_sets else ""
    print(
        f"{out}: {counted(len(sha256s), 'file')}, {counted(rows, 'row')}{besides}; "
        f"{fetched} fetched, the rest was there"
    )


def _folders(source: Path | None) -> list[str]:
    """Return the folders that may have the files, below a local copy or the address."""
    folders = ["task1/all", "task1/surprise"]
    return folders if source is None else [*folders, ""]  # a copy may have all files in one folder


def _selected(published: Published, selection: Selection) -> Published:
    """Return the selected training and development files.

    Raises:
        UserError: there is no such language, or it lacks one of the settings.
    """
    trainings = [f"train-{setting}" for setting in selection.settings]
    if selection.languages is None:
        languages = [
            name for name, files in published.items() if not files.keys().isdisjoint(trainings)
        ]
    else:
        languages = list(selection.languages)
        for language in languages:
            _check_language(published, language, trainings)
    parts = [*trainings, "dev"]
    return {
        language: {part: published[language][part] for part in parts if part in published[language]}
        for language in languages
    }


def _check_language(published: Published, language: str, trainings: Sequence[str]) -> None:
    """Check that a language that the user names has all training files.

    Raises:
        UserError: there is no such language, or it lacks one of the files.
    """
    if language not in published:
        raise UserError(f"no language {language!r}{nearest(language, published)}")
    for training in trainings:
        if training not in published[language]:
            raise UserError(f"{language} has no {training}; leave it out of --languages")
