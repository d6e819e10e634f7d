"""Parallel text for `onmt-entmax prepare files`, and the arguments that prepare it."""

import random
from pathlib import Path

from tests.cli.changed_calls import changed_call

# The option that names the development set.
DEV = "--val dev.ro dev.en"

_TRAINING_PAIRS, _DEVELOPMENT_PAIRS = 300, 20
_WORDS = {
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}
# The values of each option of a usual call: it prepares the training pairs.
_USUAL = {
    "--languages": "ro en",
    "--train": "train.ro train.en",
    "--symbols": "60",
    "--out": "data",
}


def sentences(language: str, count: int) -> list[str]:
    """Return random sentences of three to nine words.

    Sentences with the same position have the same length in both languages, since both are drawn
    from the same seed.
    """
    generator = random.Random(3)
    return [
        " ".join(generator.choices(_WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


def write_pairs(folder: Path) -> None:
    """Write 300 pairs to train on, and 20 for development or test."""
    for language in _WORDS:
        drawn = sentences(language, _TRAINING_PAIRS + _DEVELOPMENT_PAIRS)
        parts = {"train": drawn[:_TRAINING_PAIRS], "dev": drawn[_TRAINING_PAIRS:]}
        for name, part in parts.items():
            text = "".join(f"{sentence}\n" for sentence in part)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def arguments_with(options: str) -> list[str]:
    """Return the arguments of a call with options besides the usual ones, or in place of them.

    `changed_call` says how the options are written.
    """
    return changed_call(_USUAL, options)
