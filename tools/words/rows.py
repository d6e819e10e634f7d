"""Rows of the CoNLL-SIGMORPHON 2018 shared task, `lemma<TAB>form<TAB>tag;tag`, and the pairs of
lines that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, write_files
from onmt_entmax.text.morphology import LANGUAGE, encode_source, encode_word

SETTINGS = ("low", "medium", "high")


class Row(NamedTuple):
    """A lemma, its inflected form, and the tags that ask for it."""

    lemma: str
    form: str
    tags: tuple[str, ...]


def read_rows(path: Path) -> list[Row]:
    """The rows of a task file.

    Raises:
        UserError: names the file and line that is not `lemma<TAB>form<TAB>tag;tag`.
    """
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(
                f"{path}:{number}: expected lemma, form and tags divided by tabs, "
                f"found {len(columns)} column{'s' * (len(columns) != 1)}"
            )
        lemma, form, tags = columns[0], columns[1], columns[2].split(";")
        if not lemma or not form or "" in tags:
            raise UserError(f"{path}:{number}: empty lemma, form or tag")
        rows.append(Row(lemma, form, tuple(tags)))
    if not rows:
        raise UserError(f"{path}: no rows")
    divided = sum(";" in row.form for row in rows)
    if 2 * divided > len(rows) and all(len(row.tags) == 1 for row in rows):
        raise UserError(
            f"{path}: the columns look like lemma, tags, form; expected the form second"
        )
    return rows


def as_pair(language: str, row: Row) -> tuple[str, str]:
    """The line of the source and the line of the target file."""
    source = encode_source(language, row.lemma, row.tags)
    return " ".join(source), " ".join(encode_word(row.form))


def write_pairs(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> None:
    """Writes `PATH.src` and `PATH.tgt` for each path, all or none."""
    texts = {}
    for path, some in pairs.items():
        for side, suffix in enumerate(("src", "tgt")):
            lines = (pair[side] + "\n" for pair in some)
            texts[path.with_name(f"{path.name}.{suffix}")] = "".join(lines)
    write_files(texts)


def language_of(path: Path, number: int, line: str) -> str:
    """The language that a source line begins with."""
    first = line.split(" ", 1)[0]
    if not first.startswith(LANGUAGE) or first == LANGUAGE:
        raise UserError(f"{path}:{number}: expected a language first ({LANGUAGE}...)")
    return first.removeprefix(LANGUAGE)
