"""Small corpora in the formats in which parallel corpora are published.

A *part* of a corpus is `train`, `val` or `test`. `lines_of` makes up the lines of a part, as many
as `SIZES` has.
"""

import html
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tools.papers.parallel_corpora import PARALLEL

SIZES = {"train": 120, "val": 20, "test": 20}
SUBWORDS = 60  # symbols of `prepare files`: the short text has no more


def expect_small_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tools expect corpora of these sizes, with any checksums."""
    for name, corpus in PARALLEL.items():
        small = replace(
            corpus,
            counts={part: SIZES[part] for part in corpus.counts},
            prepare=re.sub(r"--symbols \d+", f"--symbols {SUBWORDS}", corpus.prepare),
            sha256={},
        )
        monkeypatch.setitem(PARALLEL, name, small)


def lines_of(language: str, part: str) -> list[str]:
    """Return the sentences of a part, in the script of the language; `&` needs an escape in XML."""
    letters = "犬走吠通" if language == "ja" else "abcd"
    return [f"{letters[n % 4] * (n % 3 + 1)} x{n} & {part} ." for n in range(SIZES[part])]


def published_text(file: str, lines: list[str]) -> str:
    """Return the text of a file in the format that its name stands for.

    | name | format |
    |---|---|
    | `*.sgm`, `*.xml` | development and test sets of WMT and of IWSLT: a sentence in each `<seg>` |
    | `train.tags.*` | training text of IWSLT: sentences as they are, and lines of metadata |
    | others | sentences as they are |
    """
    if file.endswith((".sgm", ".xml")):
        lines = ["<doc>", *(f"<seg id='1'> {html.escape(line)} </seg>" for line in lines)]
    elif file.startswith("train.tags."):
        lines = ["<url>http://x</url>", *lines]
    return "".join(f"{line}\n" for line in lines)


def write_copy(name: str, folder: Path) -> Path:
    """Write the files of a corpus as its makers publish them; return their folder.

    A part may have several files, over which its lines are spread.
    """
    folder.mkdir()
    corpus = PARALLEL[name]
    for part, patterns in corpus.files.items():
        for language in corpus.languages:
            lines = lines_of(language, part)
            size = math.ceil(len(lines) / len(patterns))
            for number, pattern in enumerate(patterns):
                file = pattern.format(language)
                text = published_text(file, lines[number * size : (number + 1) * size])
                (folder / file.replace("*", "x")).write_text(text, encoding="utf-8")
    return folder


def publish(monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes]) -> None:
    """Let downloads from below the address of a corpus return these files."""
    published = {f"{PARALLEL[name].url}/{file}": content for file, content in files.items()}
    monkeypatch.setattr("tools.papers.corpus_files.download", published.__getitem__)
