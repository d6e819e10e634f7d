"""Choose languages of a folder of a SIGMORPHON shared task.

The folder has a file for each part of a language:

<language>-train, or <language>-train-low, -train-medium and -train-high
<language>-dev
<language>-covered-test and <language>-test
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import naming

ALL = "all"
"""The word that stands for all languages"""
SETTINGS = ("low", "medium", "high")
_FILE = re.compile(r"(.+?)-(train(?:-\w+)?|dev|covered-test|test)")

Parts = Mapping[str, Collection[str]]
"""The parts of each language that have a file: `dev`, `train-medium`, ..."""


class ChosenLanguages(NamedTuple):
    """The languages to use, and the others.

    Attributes:
        languages: the languages to use.
        left_out: languages that `all` leaves out because a file is missing.
    """

    languages: list[str]
    left_out: list[str]


def choose_languages(folder: Path, names: Sequence[str], needed: Sequence[str]) -> ChosenLanguages:
    """Choose the languages of a folder that the user names, or all that have the needed files.

    Args:
        folder: the folder of the task's files.
        names: names of languages, or `all` alone.
        needed: the parts that each language must have, such as `train-medium` and `dev`.

    Raises:
        UserError: a language is unknown or lacks a needed file, or no language has them all.
    """
    available = _available(folder)
    if list(names) != [ALL]:
        for language in names:
            _check_language(folder, language, available, needed)
        return ChosenLanguages(list(dict.fromkeys(names)), [])
    chosen = [language for language, parts in available.items() if {*needed} <= {*parts}]
    if not chosen:
        raise _no_complete_language(folder, available, needed)
    return ChosenLanguages(chosen, [language for language in available if language not in chosen])


def _available(folder: Path) -> dict[str, set[str]]:
    """Return the parts of each language of a folder.

    Raises:
        UserError: the folder cannot be listed or has no such file, or a language has a space.
    """
    with naming(folder, "read"):
        names = sorted(path.name for path in folder.iterdir())
    parts: dict[str, set[str]] = {}
    for match in filter(None, map(_FILE.fullmatch, names)):
        language, part = match.groups()
        if re.search(r"\s", language):
            raise UserError(
                f"{folder / match.group()}: a language is a word without spaces; rename the file"
            )
        parts.setdefault(language, set()).add(part)
    if not parts:
        raise UserError(
            f"{folder}: no files <language>-train (or <language>-train-<setting>) and "
            "<language>-dev, such as english-train and english-dev; --train and --dev take files "
            "of other names"
        )
    return parts


def _check_language(folder: Path, language: str, available: Parts, needed: Sequence[str]) -> None:
    """Check that a language has all files that are needed.

    Raises:
        UserError: it is unknown, or a file is missing.
    """
    if language not in available:
        raise UserError(f"{folder}: no language {language!r}{nearest(language, available)}")
    for part in needed:
        if part not in available[language]:
            raise UserError(
                f"{folder}: no file {language}-{part}; {language} has "
                f"{', '.join(sorted(available[language]))}"
            )


def _no_complete_language(folder: Path, available: Parts, needed: Sequence[str]) -> UserError:
    """Return the error about a folder in which no language has all needed files."""
    parts = {part for language_parts in available.values() for part in language_parts}
    lacking = " and ".join(f"<language>-{part}" for part in sorted(needed))
    there = ", ".join(f"<language>-{part}" for part in sorted(parts))
    has_settings = not parts.isdisjoint(f"train-{setting}" for setting in SETTINGS)
    hint = ""
    if "train" in needed and has_settings:
        hint = "; --setting chooses train-low, train-medium or train-high"
    return UserError(f"{folder}: no language has {lacking}; found only {there}{hint}")
