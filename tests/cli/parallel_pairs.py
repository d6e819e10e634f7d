"""Parallel text for `onmt-entmax prepare files`, and the arguments that prepare it."""

import random
from collections.abc import Sequence
from pathlib import Path

WORDS = {
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}


def sentences(language: str, count: int) -> list[str]:
    """Return random lines; those of both languages have the same numbers of words."""
    generator = random.Random(3)
    return [
        " ".join(generator.choices(WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


def write_pairs(folder: Path) -> None:
    """Write 300 pairs to train on, and 20 for development or test."""
    for language in WORDS:
        lines = [f"{line}\n" for line in sentences(language, 320)]
        (folder / f"train.{language}").write_text("".join(lines[:300]), encoding="utf-8")
        (folder / f"dev.{language}").write_text("".join(lines[300:]), encoding="utf-8")


def arguments_of(**changes: Sequence[object]) -> list[str]:
    """Return the arguments of `prepare files` for the pairs; an option may be changed or added."""
    options: dict[str, Sequence[object]] = {
        "languages": ["ro", "en"],
        "train": ["train.ro", "train.en"],
        "symbols": [60],
        "out": ["data"],
        **changes,
    }
    return [str(word) for name, values in options.items() for word in (f"--{name}", *values)]


# The option that names the development set.
DEV = {"val": ["dev.ro", "dev.en"]}
