"""Parallel text for `onmt-entmax prepare files`, and the arguments that prepare it."""

import random
from pathlib import Path

from tests.cli.changed_calls import changed_call

WORDS = {
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}


def sentences(language: str, count: int) -> list[str]:
    """Return so many random lines, of as many words in either language."""
    generator = random.Random(3)
    return [
        " ".join(generator.choices(WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


# Options of a call of `prepare files` that prepares the training pairs.
USUAL = {"--languages": "ro en", "--train": "train.ro train.en", "--symbols": "60", "--out": "data"}
DEV = "--val dev.ro dev.en"  # the option that names the development set


def write_pairs(folder: Path) -> None:
    """Write 300 pairs to train on, and 20 for development or test."""
    for language in WORDS:
        lines = [f"{line}\n" for line in sentences(language, 320)]
        (folder / f"train.{language}").write_text("".join(lines[:300]), encoding="utf-8")
        (folder / f"dev.{language}").write_text("".join(lines[300:]), encoding="utf-8")


def arguments_with(options: str) -> list[str]:
    """Return the arguments of a call with these options, which may replace some of `USUAL`."""
    return changed_call(USUAL, options)
