"""Inflection data of the CoNLL-SIGMORPHON 2018 shared task as tokens, and back.

A model of inflection reads the language, the tags and the characters of the lemma, as in Peters,
Niculae and Martins (2019), section 4.1, and writes the characters of the form:

    draw, V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w    ->    d r a w n

- `lang=` marks the language and `+` a tag (as in finite-state morphology), which tells them from
  characters: the tag V is `+V`, the letter V is `V`.
- A character is a Unicode code point, as in the data: nothing is normalised, and combining marks
  are tokens.
- A space inside a word is `▁` (U+2581). Other white space and `▁` itself are escaped by number,
  such as `U+00A0`. There are no other escapes, and decoding is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines

SPACE = "▁"
LANGUAGE = "lang="
TAG = "+"
UNKNOWN = "<unk>"  # output for a character that is not in the vocabulary
_ESCAPE = re.compile(r"U\+([0-9A-F]{4,6})")
_ESCAPED = re.compile(rf"{SPACE}|U\+[0-9A-F]{{4}}")  # in a tag: white space has four digits


def encode_word(word: str) -> list[str]:
    """Return the tokens of a word, one for each code point."""
    return [
        SPACE if c == " " else f"U+{ord(c):04X}" if c.isspace() or c == SPACE else c for c in word
    ]


def decode_word(tokens: Iterable[str]) -> str:
    """Return the word of the tokens, the inverse of `encode_word`.

    `<unk>` becomes U+FFFD, the replacement character. Tokens that are neither characters nor
    escapes of `encode_word` are kept.
    """
    special = {SPACE: " ", UNKNOWN: "\ufffd"}
    characters = []
    for token in tokens:
        number = _ESCAPE.fullmatch(token)
        code = int(number.group(1), 16) if number else 0
        escaped = chr(code) if code <= 0x10FFFF else ""
        known = escaped == SPACE or escaped.isspace()
        characters.append(escaped if known else special.get(token, token))
    return "".join(characters)


def order_tokens(text: str, reverse: bool) -> str:
    """Reverse the tokens of a text if `reverse`, for right-to-left models; its own inverse."""
    return " ".join(text.split()[:: -1 if reverse else 1])


def encode_source(language: str, lemma: str, tags: Iterable[str]) -> list[str]:
    """Return the source tokens of one query: language, tags, characters of the lemma."""
    marked = [LANGUAGE + language] + [encode_tag(tag) for tag in tags]
    return marked + encode_word(lemma)


def encode_tag(tag: str) -> str:
    """Return the token of a tag."""
    return TAG + "".join(encode_word(tag))


def decode_tag(token: str) -> str:
    """Return the tag of a token, the inverse of `encode_tag`."""
    return _ESCAPED.sub(lambda found: decode_word([found.group()]), token.removeprefix(TAG))


def decode_source(tokens: Iterable[str]) -> tuple[str, tuple[str, ...], str]:
    """Return language, tags and lemma of source tokens, the inverse of `encode_source`.

    Raises:
        ValueError: the first token is not a language.
    """
    first, *rest = tokens
    if not is_language(first):
        raise ValueError(f"expected a language first ({LANGUAGE}...), not {first!r}")
    tags = tuple(decode_tag(token) for token in rest if is_tag(token))
    lemma = decode_word(token for token in rest if not is_tag(token))
    return first.removeprefix(LANGUAGE), tags, lemma


def is_language(token: str) -> bool:
    """Whether a source token is a language."""
    return token.startswith(LANGUAGE) and len(token) > len(LANGUAGE)


def is_tag(token: str) -> bool:
    """Whether a source token is a tag; `+` alone is a character."""
    return token.startswith(TAG) and len(token) > len(TAG)


CELLS = "cells.tsv"  # in the folder of the data, and of a model
SETTINGS = ("low", "medium", "high")


class Row(NamedTuple):
    """A line of a task file: a lemma, its inflected form, and the tags of the form."""

    lemma: str
    form: str
    tags: tuple[str, ...]


def read_rows(path: Path) -> list[Row]:
    """Read a task file, whose lines are blank or `lemma<TAB>form<TAB>tag;tag`.

    Raises:
        UserError: names the file and the line that has another form.
    """
    return rows_of(read_lines(path), str(path))


def rows_of(lines: Iterable[str], name: str) -> list[Row]:
    """Return the rows of the lines of a task file; `name` is for errors.

    Raises:
        UserError: names the line that has another form.
    """
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(
                f"{name}:{number}: expected lemma, form and tags divided by tabs, "
                f"found {counted(len(columns), 'column')}"
                + ("; `cut -f1-3` keeps the first three" if len(columns) > 3 else "")
            )
        lemma, form, tags = columns[0], columns[1], columns[2].split(";")
        if not lemma or not form or "" in tags:
            raise UserError(f"{name}:{number}: empty lemma, form or tag")
        rows.append(Row(lemma, form, tuple(tags)))
    if not rows:
        raise UserError(f"{name}: no rows")
    divided = sum(";" in row.form for row in rows)
    if 2 * divided > len(rows) and all(len(row.tags) == 1 for row in rows):
        raise UserError(
            f"{name}: the columns look like lemma, tags, form; expected the form second"
        )
    return rows


def as_pair(language: str, row: Row) -> tuple[str, str]:
    """Return the lines of a row in the source and the target file."""
    source = encode_source(language, row.lemma, row.tags)
    return " ".join(source), " ".join(encode_word(row.form))


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    texts = {}
    for path, some in pairs.items():
        for side, suffix in enumerate(("src", "tgt")):
            lines = (pair[side] + "\n" for pair in some)
            texts[path.with_name(f"{path.name}.{suffix}")] = "".join(lines)
    return texts


def language_of(path: Path, number: int, line: str) -> str:
    """Return the language at the beginning of a source, which is line `number` of a file.

    Raises:
        UserError: the line does not begin with a language.
    """
    first = line.split(" ", 1)[0]
    if not is_language(first):
        raise UserError(f"{path}:{number}: expected a language first ({LANGUAGE}...)")
    return first.removeprefix(LANGUAGE)


def count_cells(sources: Iterable[str]) -> dict[str, dict[tuple[str, ...], int]]:
    """Return for each language how often its training sources have each sequence of tags."""
    cells: dict[str, dict[tuple[str, ...], int]] = {}
    for source in sources:
        language, tags, _ = decode_source(source.split())
        of = cells.setdefault(language, {})
        of[tags] = of.get(tags, 0) + 1
    return cells


def cells_text(cells: Mapping[str, Mapping[tuple[str, ...], int]]) -> str:
    """Return `cells.tsv`: language, tags and their number, by language and falling number."""
    return "".join(
        f"{language}\t{';'.join(tags)}\t{number}\n"
        for language, of in sorted(cells.items())
        for tags, number in sorted(of.items(), key=lambda pair: (-pair[1], pair[0]))
    )


def read_cells(path: Path) -> dict[str, dict[tuple[str, ...], int]]:
    """Read `cells.tsv`, the inverse of `cells_text`.

    Raises:
        UserError: there is no such file, or a line of it has another form.
    """
    if not path.exists():
        raise UserError(
            f"{path}: no list of cells; `onmt-entmax prepare sigmorphon` writes cells.tsv beside "
            "the training data: name it with --cells, or copy it into the model folder"
        )
    cells: dict[str, dict[tuple[str, ...], int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        language, *rest = line.split("\t")
        if len(rest) != 2 or not rest[0] or not rest[1].isdigit():
            raise UserError(f"{path}:{number}: expected language, tags and number between tabs")
        cells.setdefault(language, {})[tuple(rest[0].split(";"))] = int(rest[1])
    return cells
