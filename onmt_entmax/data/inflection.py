"""Inflection tables, as of the SIGMORPHON shared tasks and UniMorph, as tokens, and back.

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

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
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


Cells = Mapping[str, Mapping[tuple[str, ...], int]]
"""For each language, how often its training sources have each sequence of tags"""
SETTINGS = ("low", "medium", "high")


COLUMNS = ("lemma", "form", "tags")
# Names of columns in headings of tables; `word` is whichever of the first two is missing.
_NAMES = {
    "lemma": "lemma, lexeme, headword, base, base form, citation form, dictionary form, source",
    "form": "form, inflected, inflected form, inflection, word form, wordform, surface, "
    "surface form, target",
    "tags": "tags, tag, features, feature, feats, msd, unimorph, morphology, morphological tags, "
    "morphological features, morphosyntactic description",
}
_COLUMN_OF = {name: column for column, names in _NAMES.items() for name in names.split(", ")}


class Row(NamedTuple):
    """A row of a table: a lemma, its inflected form, and the tags of the form."""

    lemma: str
    form: str
    tags: tuple[str, ...]
    line: int = 0
    """Of the file, from 1."""


def split_tags(text: str, separator: str = ";") -> tuple[str, ...]:
    """Return the tags of `N;NOM(PL;PSS(1,PL))`; what brackets enclose is one tag."""
    tags: list[str] = []
    if not text:
        return ()
    for part in text.split(separator):
        if tags and tags[-1].count("(") > tags[-1].count(")"):
            tags[-1] += separator + part
        else:
            tags.append(part)
    return tuple(tags)


def read_table(path: Path, columns: Sequence[str] = ()) -> tuple[list[Row], str]:
    """Read a table, as `table_of`.

    Raises:
        UserError: names the file and the line that has another form.
    """
    return table_of(read_lines(path), str(path), columns)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table, as `read_table`."""
    return read_table(path)[0]


def table_of(lines: Iterable[str], name: str, columns: Sequence[str] = ()) -> tuple[list[Row], str]:
    """Return the rows of a table and a description of its layout.

    Lines without a tab in the first row are comma-separated values. Without `;`, tags of the form
    `key=value` are divided by commas, as in the shared task of 2016.

    Args:
        lines: blank, or a row; the first may be a heading. It is one if it has names of columns,
            or if its tags are lower-case words and no row below has such tags.
        name: of the table, for errors.
        columns: `lemma`, `form` and `tags` in the table's order, with another word for each
            column to leave out; by default, guessed.

    Raises:
        UserError: names the line that has another form; or the columns are unclear.
    """
    table: list[tuple[int, list[str]]] = []
    comma = False
    for number, line in enumerate(lines, start=1):
        if not table:
            comma = "\t" not in line
        try:
            cells = next(csv.reader([line], strict=True)) if comma else line.split("\t")
        except csv.Error as error:
            raise UserError(f"{name}:{number}: no row of a CSV file ({error})") from None
        if any(map(str.strip, cells)):
            table.append((number, cells))
    heading, named = "", _named_columns(table[0][1]) if table else []
    if named:
        columns = columns or named
        if not set(COLUMNS) <= {cell.strip().lower() for cell in table[0][1]}:
            heading = _said_heading(*table[0])
        del table[0]
    if not table:
        raise UserError(f"{name}: no rows")
    width = len(columns) or max(3, len(table[0][1]))
    divided = "commas" if comma else "tabs"
    for number, cells in table:
        if len(cells) != width:
            raise UserError(
                f"{name}:{number}: expected lemma, form and tags, {width} columns divided by "
                f"{'commas or tabs' if comma else 'tabs'}; found {len(cells)}"
            )
    if not columns:  # a heading must not decide them
        columns = _guess_columns([cells for _, cells in (table[1:] or table)], name)
    order = [columns.index(column) for column in COLUMNS]
    if not named and _is_heading([[cells[place] for place in order] for _, cells in table]):
        heading = _said_heading(*table.pop(0))
    texts = [cells[order[2]] for _, cells in table]
    separator = "," if any("=" in t for t in texts) and not any(";" in t for t in texts) else ";"
    rows = []
    for number, cells in table:
        lemma, form, text = (cells[place] for place in order)
        tags = split_tags(text, separator)
        if not lemma or not form or not tags or "" in tags:
            raise UserError(f"{name}:{number}: empty lemma, form or tag")
        rows.append(Row(lemma, form, tags, number))
    order_text = ", ".join(column if column in COLUMNS else "-" for column in columns)
    layered = ", some layered" if any("(" in text for text in texts) else ""
    layout = f"columns {order_text} divided by {divided}; tags divided by {separator}{layered}"
    return rows, layout + heading


def _named_columns(cells: Sequence[str]) -> list[str]:
    """Return the columns that a heading names; an empty list if it is no such heading."""
    names = [re.sub(r"[\s_-]+", " ", cell.strip()).casefold() for cell in cells]
    columns = [name if name in COLUMNS else "-" for name in names]
    for column in COLUMNS:
        alike = [place for place, name in enumerate(names) if _COLUMN_OF.get(name) == column]
        if column not in columns and len(alike) == 1:
            columns[alike[0]] = column
        elif column not in columns and names.count("word") == 1 and column != "tags":
            place = names.index("word")
            columns[place] = names[place] = column
    return columns if set(COLUMNS) <= set(columns) else []


def _is_heading(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of some rows of lemma, form and tags is a heading.

    No row below is like it: tags are codes, in capitals or divided by `;`, `=` and brackets, and a
    heading has words; or it is in capitals, and lemmas and forms are not.
    """
    (lemma, form, first), *below = rows
    first = first.strip()
    if not below or any(first in split_tags(tags) for _, _, tags in below):
        return False
    if _COLUMN_OF.get(first.casefold()) == "tags":
        return True
    if first.upper() != first:
        return _are_words(first) and not any(_are_words(tags.strip()) for _, _, tags in below)
    in_capitals = all(text.isupper() and _are_words(text.lower()) for text in (lemma, form, first))
    return in_capitals and not any(word.isupper() for row in below for word in row[:2])


def _are_words(text: str) -> bool:
    """Tell whether a text is words, which are not all in capitals."""
    return text.upper() != text and re.fullmatch(r"[^\W\d_]+([\s_-][^\W\d_]+)*", text) is not None


def _said_heading(line: int, cells: Sequence[str]) -> str:
    """Return the part of a layout's description that names a heading."""
    return f"; line {line} is taken for a heading: {', '.join(map(repr, cells))}"


def _guess_columns(table: Sequence[Sequence[str]], name: str) -> list[str]:
    """Return the columns of a table; the only one that is mostly `A;B`, `a=B` or `AB` has tags."""
    width = len(table[0])
    tags = [2] * (width == 3)
    for pattern in (r".*;.*", r"\w+=.*", r"(?=.*[A-Z])[A-Z0-9.+/(),{}-]+"):
        matches = (
            sum(bool(re.fullmatch(pattern, c)) for c in column)
            for column in zip(*table, strict=True)
        )
        likely = [place for place, number in enumerate(matches) if 2 * number > len(table)]
        if len(likely) == 1:
            tags = likely
            break
    if tags not in ([1], [2]):
        raise UserError(
            f"{name}: unclear which columns are lemma, form and tags; prepare sigmorphon takes "
            "their names, such as --columns lemma,form,tags,-"
        )
    columns = ["lemma", "form", *["-"] * (width - 3)]
    columns.insert(tags[0], "tags")
    return columns


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


def count_cells(sources: Iterable[str]) -> Cells:
    """Return the cells of sources; those without a language or tags do not count."""
    cells: dict[str, Counter[tuple[str, ...]]] = {}
    for tokens in map(str.split, sources):
        if tokens and is_language(tokens[0]):
            language, tags, _ = decode_source(tokens)
            if tags:
                cells.setdefault(language, Counter())[tags] += 1
    return cells


def cells_text(cells: Cells) -> str:
    """Return `cells.tsv`: language, tags and their number, by language and falling number."""
    return "".join(
        f"{language}\t{';'.join(tags)}\t{number}\n"
        for language, of in sorted(cells.items())
        for tags, number in sorted(of.items(), key=lambda pair: (-pair[1], pair[0]))
    )


def parse_cells(lines: Iterable[str], name: str) -> Cells:
    """Return the cells of `cells.tsv`, the inverse of `cells_text`.

    Raises:
        UserError: names the line that has another form.
    """
    cells: dict[str, dict[tuple[str, ...], int]] = {}
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(r"(\S+)\t([^\t]+)\t([0-9]{1,12})", line)
        if match is None:
            raise UserError(f"{name}:{number}: expected language, tags and number between tabs")
        cells.setdefault(match[1], {})[split_tags(match[2])] = int(match[3])
    return cells
