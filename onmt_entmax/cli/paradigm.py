"""Print the whole paradigm of a lemma: every cell with all the forms that the model admits.

    onmt-entmax paradigm turkish kitap --pos N
    onmt-entmax paradigm finnish --lemmas nouns.txt --pos N --format hunspell --output words

The cells of a language and part of speech are the tags that its training data has; training keeps
them in the model folder (`cells.tsv`), and --cells names others. A cell shows its form alone if the
model can produce no other, else every form of positive probability: `...` means that there may be
more, `?` a warning, as of `inflect`: such as a letter that training never saw in this language, or
a form that mixes scripts. Warnings go to the standard error too. Tables follow UniMorph's
dimensions: nouns have cases below each other and numbers side by side, finite verbs persons and
tenses; in a terminal, forms for which a table is too wide stand below each other.

--format csv, json and html have the same content. The other formats are word lists, with every form
of positive probability (--least P: at least P in its cell):

    hunspell  OUTPUT.dic and OUTPUT.aff, a spelling dictionary. Hunspell checks single words:
              forms with spaces stand apart, in OUTPUT.phrases.txt
    keyman    word, weight and lemma as Keyman's TSV; the weight is 1,000 times the expected number
              of cells with this form
    att       an automaton of lemma and tags to form in AT&T's format, weights -log(probability),
              as HFST and OpenFst read it

The last line that is printed says whether the list is complete: nothing else is possible. It is
not if a cell has a warning, since the model read another word or may have failed.
"""

import argparse
import csv
import html
import io
import re
import shlex
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.cli.inflect import add_models, inflector_of
from onmt_entmax.data.inflection import SPACE, Cells, encode_tag, encode_word, parse_cells
from onmt_entmax.data.unknown import named
from onmt_entmax.errors import UserError, counted, nearest, printable
from onmt_entmax.files import (
    is_stream,
    json_line,
    read_lines,
    refuse_overwriting,
    replaced_when_done,
)
from onmt_entmax.inflector import Inflection, Question
from onmt_entmax.rules import positive, shown, whole


@cache
def dimensions() -> Mapping[str, tuple[str, int, str]]:
    """Return for each tag its dimension, its place in the table, and its name."""
    text = files("onmt_entmax.data").joinpath("unimorph.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return {tag: (dimension, place, name) for place, (dimension, tag, name) in enumerate(rows)}


@dataclass(frozen=True)
class Section:
    """One table of a paradigm: the cells that share the tags of its title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: Mapping[tuple[int, int], Inflection] = field(repr=False)
    """By number of row and column; not every place has a cell."""

    def lines(self) -> Iterator[tuple[str, list[Inflection | None]]]:
        """Yield the name of each row, and its cells."""
        for i, row in enumerate(self.rows):
            yield row, [self.cells.get((i, j)) for j in range(len(self.columns))]


def sections(cells: Sequence[Inflection]) -> list[Section]:
    """Arrange the cells of one lemma in tables."""
    places: dict[tuple[str, ...], dict[tuple[tuple[str, ...], tuple[str, ...]], Inflection]] = {}
    for cell in cells:
        title, row, column = _place(cell.question.tags)
        places.setdefault(title, {})[row, column] = cell
    tables = []
    for title in _ordered(places):
        rows = _ordered(row for row, _ in places[title])
        columns = _ordered(column for _, column in places[title])
        numbered = {
            (rows.index(row), columns.index(column)): cell
            for (row, column), cell in places[title].items()
        }
        names = tuple(map(_named, columns)), tuple(map(_named, rows))
        tables.append(Section(_named(title, ", "), *names, numbered))
    return tables


def _place(tags: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the tags of a cell's section, row and column."""
    by: dict[str, list[str]] = {}
    for tag in sorted(tags, key=_order):
        by.setdefault(_dimension(tag), []).append(tag)
    if "case" in by:
        rows, columns = ["case"], ["number"]
    elif "person" in by:
        rows, columns = ["number", "person", "gender", "politeness"], ["tense", "aspect"]
    elif "number" in by:
        rows, columns = ["definiteness", "tense", "aspect"], ["gender", "number"]
    else:  # a list of forms
        rows, columns = [name for name in by if name != "part of speech"], []
    apart = [name for name in by if name not in {*rows, *columns}]
    section, row, column = (
        tuple(tag for name in names for tag in by.get(name, ())) for names in (apart, rows, columns)
    )
    return section, row, column


def _dimension(tag: str) -> str:
    return dimensions().get(tag, ("other",))[0]


def _order(tag: str) -> tuple[int, str]:
    known = dimensions().get(tag)
    return (len(dimensions()) if known is None else known[1], tag)


def _ordered(some: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return sorted(set(some), key=lambda tags: [_order(tag) for tag in tags])


def _named(tags: Sequence[str], between: str = " ") -> str:
    names = [dimensions()[tag][2] if tag in dimensions() else tag for tag in tags]
    parts = [n for n, tag in zip(names, tags, strict=True) if _dimension(tag) == "part of speech"]
    if len(parts) > 1:  # V;V.PTCP is a participle
        names.remove(parts[0])
    return between.join(names)


def cell_text(cell: Inflection) -> str:
    """Return a cell for people: its form; all forms with probabilities unless there is only one."""
    mark = " ?" if cell.warnings else ""
    if not cell.forms:
        return "(none)" + mark
    if cell.level == "only":
        return cell.forms[0].text + mark
    more = " ..." if cell.certificate.level != "exhaustive" else ""
    return " / ".join(f"{form.text} {_percent(form.prob)}" for form in cell.forms) + more + mark


def _percent(prob: float) -> str:
    """Return the probability of one form among several."""
    return "<1%" if prob < 0.005 else ">99%" if prob > 0.995 else f"{100 * prob:.0f}%"


def as_text(cells: Sequence[Inflection], width: int = sys.maxsize) -> str:
    """Return the tables with aligned columns.

    Args:
        cells: of one lemma.
        width: of a terminal. The forms of a cell take several lines if a table is wider.
    """
    blocks = []
    for section in sections(cells):
        rows = [["", *section.columns]] if any(section.columns) else []
        for row, line in section.lines():
            rows.append([row, *("" if each is None else cell_text(each) for each in line)])
        first, *widths = (max(map(_width, column)) for column in zip(*rows, strict=True))
        limits = range(max(widths), 0, -1)
        fits = (n for n in limits if 2 + first + sum(2 + min(n, w) for w in widths) <= width)
        limit = next(fits, 0)
        rows = [
            [*line]
            for row in rows
            for line in zip_longest(*(_wrapped(text, limit) for text in row), fillvalue="")
        ]
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                text + " " * (width - _width(text)) for text, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        blocks.append("\n".join([section.title, *(f"  {line}".rstrip() for line in lines)]))
    return "\n\n".join(blocks)


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell: as many forms in each as the width allows, but at least one."""
    lines: list[str] = []
    for form in re.split("(?<= /) ", text):
        if lines and _width(longer := f"{lines[-1]} {form}") <= width:
            lines[-1] = longer
        else:
            lines.append(form)
    return lines


def _width(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


CSV_HEAD = "language,lemma,tags,form,probability,certificate,warnings\n"


def as_csv(cells: Iterable[Inflection]) -> str:
    """Return a line for each form, or for a cell without any, with the columns of `CSV_HEAD`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for cell in cells:
        asked = [cell.question.language, cell.question.lemma, ";".join(cell.question.tags)]
        for form in [(form.text, f"{form.prob:.6g}") for form in cell.forms] or [("", "")]:
            writer.writerow([*asked, *form, cell.level, "; ".join(cell.warnings)])
    return stream.getvalue()


def as_record(cells: Sequence[Inflection]) -> dict[str, Any]:
    """Return the tables as JSON has them, with every form, probability and certificate."""
    first = cells[0].question
    return {
        "language": first.language,
        "lemma": first.lemma,
        "sections": [
            {
                "title": section.title,
                "rows": section.rows,
                "columns": section.columns,
                "cells": [
                    {
                        "row": row,
                        "column": column,
                        "tags": ";".join(cell.question.tags),
                        "certificate": cell.level,
                        "forms": [{"form": form.text, "prob": form.prob} for form in cell.forms],
                        "warnings": cell.warnings,
                    }
                    for (row, column), cell in section.cells.items()
                ],
            }
            for section in sections(cells)
        ],
    }


def as_html(paradigms: Iterable[Sequence[Inflection]]) -> str:
    """Return a page with the tables of each lemma, which needs no network."""
    style = files("onmt_entmax.report").joinpath("page.css").read_text(encoding="utf-8")
    bodies, title = list[str](), ""
    for cells in paradigms:
        first = cells[0].question
        title = "paradigms" if bodies else f"{first.lemma} ({first.language})"
        tables = "\n".join(map(_table, sections(cells)))
        bodies.append(
            f"<h2><bdi>{html.escape(first.lemma)}</bdi> "
            f'<span class="muted">{html.escape(first.language)}</span></h2>\n'
            f'<div class="paradigms">{tables}</div>'
        )
    legend = (
        '<p class="muted">A form in green is the only one that the model can produce. Elsewhere '
        "all forms of positive probability are listed; ... means that there may be more, and ? a "
        "warning: point at the cell to read it.</p>"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body><main>\n"
        + "\n".join([legend, *bodies])
        + "\n</main></body>\n</html>\n"
    )


def _table(section: Section) -> str:
    head = "".join(f"<th scope='col'>{html.escape(column)}</th>" for column in section.columns)
    lines = [f"<tr><td></td>{head}</tr>"] if any(section.columns) else []
    for row, line in section.lines():
        entries = "".join("<td></td>" if cell is None else _entry(cell) for cell in line)
        lines.append(f"<tr><th scope='row'>{html.escape(row)}</th>{entries}</tr>")
    return (
        f"<section><h3>{html.escape(section.title)}</h3>\n"
        f'<div class="scroll"><table class="paradigm">{"".join(lines)}</table></div></section>'
    )


def _entry(cell: Inflection) -> str:
    tip = html.escape("; ".join([";".join(cell.question.tags), *cell.warnings]))
    mark = ' <b class="alarm">?</b>' if cell.warnings else ""
    if cell.level == "only":
        inner = f"<bdi>{html.escape(cell.forms[0].text)}</bdi>"
        return f'<td class="only" title="{tip}">{inner}{mark}</td>'
    forms = "<br>".join(
        f'<bdi>{html.escape(form.text)}</bdi> <span class="muted">{_percent(form.prob)}</span>'
        for form in cell.forms
    )
    more = "" if cell.certificate.level == "exhaustive" else " ..."
    return f'<td title="{tip}">{forms or "(none)"}{more}{mark}</td>'


@dataclass
class Doubts:
    """The warnings of many cells."""

    cells: int = 0
    doubtful: int = 0
    """Cells with warnings."""
    first: dict[str, tuple[str, int]] = field(default_factory=dict)
    """For the first five warnings, lemma and number of cells."""
    others: int = 0
    """Cells with other warnings."""

    def add(self, cell: Inflection) -> None:
        """Count a cell."""
        self.cells += 1
        self.doubtful += bool(cell.warnings)
        named = [each for each in cell.warnings if each in self.first or len(self.first) < 5]
        self.others += len(named) < len(cell.warnings)
        for warning in named:
            lemma, count = self.first.get(warning, (cell.question.lemma, 0))
            self.first[warning] = lemma, count + 1

    def lines(self) -> list[str]:
        """Return the first warnings, each with the number of its cells."""
        cells = counted(self.cells, "cell")
        lines = [
            f"{lemma}: {warning} ({count:,} of {cells})"
            for warning, (lemma, count) in self.first.items()
        ]
        return lines + [f"others ({self.others:,} of {cells})"] * bool(self.others)


class WordList:
    """All forms of many paradigms, and whether anything else is possible.

    Args:
        least: the least probability of a form in its cell.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.weights: dict[str, float] = {}
        """For each form the expected number of cells that have it."""
        self.lemmas: dict[str, str] = {}
        self.transitions: list[str] = []
        self._state = 0  # the last state of the automaton
        self.doubts = Doubts()
        self._missing, self._mass = 0, 1.0

    def add(self, cell: Inflection) -> None:
        """Add the forms of a cell."""
        listed = [form for form in cell.forms if form.prob >= self.least]
        mass = sum(form.prob for form in listed)
        whole = cell.level in ("only", "exhaustive") and len(listed) == len(cell.forms)
        self.doubts.add(cell)
        self._missing += not whole
        self._mass = min(self._mass, mass)
        question = cell.question
        for form in listed:
            self.weights[form.text] = self.weights.get(form.text, 0.0) + form.prob
            self.lemmas.setdefault(form.text, question.lemma)
            upper = [*encode_word(question.lemma), *map(encode_tag, question.tags)]
            self._path(upper, encode_word(form.text), 0.0 - form.log_prob)

    def _path(self, upper: Sequence[str], lower: Sequence[str], weight: float) -> None:
        """Add one path from the first state, 0, with its weight on the first transition."""
        state = 0
        for place in range(max(len(upper), len(lower))):
            self._state += 1
            pair = [side[place] if place < len(side) else "@0@" for side in (upper, lower)]
            cost = f"\t{weight:.9g}" if place == 0 else ""
            # As HFST writes a space.
            symbols = "\t".join("@_SPACE_@" if each == SPACE else each for each in pair)
            self.transitions.append(f"{state}\t{self._state}\t{symbols}{cost}")
            state = self._state
        self.transitions.append(f"{state}")

    def completeness(self, kind: str) -> str:
        """Return the line that says whether the list is complete in a format."""
        cells, reasons = counted(self.doubts.cells, "cell"), []
        if self._missing:
            reasons.append(f"something is missing in {self._missing:,} of {cells}")
        if doubtful := self.doubts.doubtful:
            reasons.append(f"there are warnings in {doubtful:,} of {cells}")
        if apart := self.apart(kind):
            forms = f"{len(apart):,} of {counted(len(self.weights), 'form')}"
            where = "are in .phrases.txt" if kind == "hunspell" else "are left out"
            reasons.append(f"{forms}, which {kind.capitalize()} cannot read as a word, {where}")
        if not reasons:
            return f"complete: mass {self._mass:.6f}"
        return f"incomplete: mass at least {self._mass:.6f} in each cell; {'; '.join(reasons)}"

    def apart(self, kind: str) -> list[str]:
        """Return the forms that a format cannot hold as words; `att` escapes everything."""
        if kind == "hunspell":  # several words, spaces around, or nothing
            return sorted(form for form in self.weights if form.split() != [form])
        if kind == "keyman":  # no comment, no end of a column
            return sorted(form for form in self.weights if _NO_ENTRY.search(form))
        return []

    def texts(self, kind: str, output: Path) -> dict[Path, str]:
        """Return the files of a format, and their content."""
        said, apart = self.completeness(kind), self.apart(kind)
        if kind == "hunspell":
            words = sorted(self.weights.keys() - {*apart})
            # Without them, Hunspell divides words at characters that are no letters.
            others = "".join(sorted({c for word in words for c in word if not c.isalpha()}))
            affixes = [f"# {said}", "SET UTF-8", *([f"WORDCHARS {others}"] if others else [])]
            # A slash would begin flags.
            entries = [str(len(words)), *(word.replace("/", "\\/") for word in words)]
            lines = {"dic": entries, "aff": affixes, "phrases.txt": [*map(printable, apart)]}
            return {
                output.with_name(f"{output.name}.{name}"): "".join(f"{line}\n" for line in some)
                for name, some in lines.items()
            }
        if kind == "keyman":
            left_out = {*apart}
            rows = [
                f"{word}\t{max(round(1000 * weight), 1)}\t{printable(self.lemmas[word])}"
                for word, weight in sorted(self.weights.items())
                if word not in left_out
            ]
            return {output: "\n".join([*rows, f"# {said}", ""])}
        return {output: "\n".join([*self.transitions, ""])}


_DIVIDING = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]")  # columns and lines
# A comment of Keyman's list, nothing, or more than one column or line.
_NO_ENTRY = re.compile(rf"^#|^$|{_DIVIDING.pattern}")
FORMATS = ("table", "csv", "json", "html")
LISTS = ("hunspell", "keyman", "att")


def parts_of_speech(cells: Cells, language: str) -> dict[str, int]:
    """Return the parts of speech of a language with their number of cells."""
    return Counter(_part_of_speech(tags) for tags in cells.get(language, ()))


def _part_of_speech(tags: Sequence[str]) -> str:
    return tags[0].split(".")[0]  # forms of V.PTCP and their like are those of verbs


def cells_of(cells: Cells, language: str, pos: str | None) -> list[tuple[str, ...]]:
    """Return the tags of the cells of a language and part of speech, the most frequent first.

    The same tags in another order are the same cell; the first of them counts.

    Raises:
        UserError: the language has no cells, or several parts of speech and none is chosen.
    """
    sizes = parts_of_speech(cells, language)
    if not sizes:
        raise UserError(
            f"no cells of the language {language!r} are known{nearest(language, cells)}"
        )
    if pos is None and len(sizes) == 1:
        (pos,) = sizes
    if pos not in sizes:
        known = ", ".join(f"{name} ({counted(size, 'cell')})" for name, size in sizes.items())
        raise UserError(f"--pos: {language} has {known}; choose one")
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for tags in cells[language]:
        if _part_of_speech(tags) == pos:
            found.setdefault(tuple(sorted(tags)), tags)
    return list(found.values())


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("language", help="as the model names it")
    add("lemma", nargs="?", help="the word; or --lemmas")
    add("--lemmas", type=Path, metavar="FILE", help="a lemma a line, or lemma<TAB>part of speech")
    add("--pos", help="part of speech, such as N or V; needed if the language has several")
    add_models(parser)
    add(
        "--cells",
        type=Path,
        metavar="FILE",
        help="other cells: language, tags and number, between tabs",
    )
    add("--format", choices=(*FORMATS, *LISTS), default="table", help="default: table")
    add("--least", type=positive(1), default=0.0, metavar="P",
        help="of word lists: least probability of a form (default: all above 0)")  # fmt: skip
    add("--beam_size", type=whole(1, 10_000), default=10, help="default 10")
    add("--budget", type=whole(0, 10**7), default=0, metavar="N",
        help="decoder steps that enumerate a cell of which the beam does not find all (default 0)",
    )  # fmt: skip
    add("--output", type=Path, help="file to write (default: standard output)")
    options = parser.parse_args(arguments)
    if (options.lemma is None) == (options.lemmas is None):
        raise UserError("name one lemma, or a file of them with --lemmas")
    if options.least and options.format not in LISTS:
        raise UserError(f"--least goes with --format {', '.join(LISTS)}")
    if options.format in LISTS and not (options.output and options.output.name):
        raise UserError(f"--format {options.format} needs --output, a file")
    if options.format == "hunspell" and is_stream(options.output):
        raise UserError(
            f"--output {options.output}: --format hunspell writes two files, OUTPUT.dic and "
            "OUTPUT.aff; name a file"
        )
    return options


def read_lemmas(options: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Return lemmas, each with a part of speech if one is given.

    Raises:
        UserError: the file has no lemma, or a line more than two columns.
    """
    if options.lemma is not None:
        return [(options.lemma, options.pos)]
    lemmas: list[tuple[str, str | None]] = []
    for number, line in enumerate(read_lines(options.lemmas), 1):
        lemma, *pos = line.rstrip().split("\t")
        if len(pos) > 1 or (pos and not lemma):
            raise UserError(
                f"{options.lemmas}:{number}: expected lemma, or lemma<TAB>part of speech"
            )
        if lemma:
            lemmas.append((lemma, pos[0] if pos else options.pos))
    if not lemmas:
        raise UserError(f"{options.lemmas}: no lemmas")
    return lemmas


def main(arguments: Sequence[str]) -> int:
    """Print the paradigms; return the exit status."""
    options = parse_arguments(arguments)
    words, is_list = WordList(options.least), options.format in LISTS
    paths = [*words.texts(options.format, options.output)] if is_list else [options.output]
    refuse_overwriting([options.lemmas, options.cells], paths)
    lemmas = read_lemmas(options)
    for lemma, _ in lemmas:
        if options.format == "keyman" and _DIVIDING.search(lemma):
            raise UserError(f"{shown(lemma)}: a tab or line end, which a column cannot have")
    inflector = inflector_of(options, 0, budget=options.budget)
    folder = inflector.folders[0]
    cells = (
        parse_cells(read_lines(options.cells), str(options.cells))
        if options.cells
        else read_cells(folder)
    )
    if options.cells and not cells:
        raise UserError(
            f"{options.cells}: has no cells; its lines are language, tags and their number, "
            "between tabs"
        )
    if options.language in inflector.untagged and not cells.get(options.language):
        option = "--model" if options.models else "--reversed"
        query = shlex.join([option, str(folder), options.language, lemmas[0][0], ""])
        raise UserError(
            f"{folder}: its training data for {options.language} has no tags, hence no paradigms; "
            f"onmt-entmax inflect {query} prints the form of a lemma"
        )
    if not cells:
        raise UserError(
            f"{folder}: trained by a version that kept no cells.tsv; name one with --cells: lines "
            "of language, tags and their number, between tabs"
        )
    questions = [
        [Question(options.language, lemma, tags) for tags in cells_of(cells, options.language, pos)]
        for lemma, pos in lemmas
    ]
    # The cells of all lemmas are decoded in common batches.
    answers = inflector.answers([each for some in questions for each in some], 256)
    if is_list:
        for cell in answers:
            words.add(cell)
        contents = words.texts(options.format, options.output)
        with replaced_when_done(paths) as opened:
            for file, text in zip(opened, contents.values(), strict=True):
                file.write(text)
        print(words.completeness(options.format))
        warn(*words.doubts.lines())
        left_out = list(filter(None, words.apart(options.format)))
        if left_out and options.format == "keyman":
            warn(f"left out, as no line of the list can hold them: {named(Counter(left_out))}")
        return 0
    doubts = Doubts()
    written = _paradigms(answers, questions, doubts)
    if options.output is None:
        width = shutil.get_terminal_size((sys.maxsize, 0)).columns
        sys.stdout.write(_joined(written, options.format, width))
    else:
        with replaced_when_done([options.output]) as (file,):
            file.write(_joined(written, options.format))
    warn(*doubts.lines())
    return 0


def _paradigms(
    answers: Iterator[Inflection], questions: Iterable[Sequence[Question]], doubts: Doubts
) -> Iterator[list[Inflection]]:
    """Yield the cells of each lemma, and count their warnings."""
    for some in questions:
        cells = [next(answers) for _ in some]
        for cell in cells:
            doubts.add(cell)
        yield cells


def _joined(written: Iterable[Sequence[Inflection]], kind: str, width: int = sys.maxsize) -> str:
    """Return all paradigms in one text; tables for a terminal of a width."""
    if kind == "html":
        return as_html(written)
    if kind == "table":
        tables = [(printable(cells[0].question.lemma), as_text(cells, width)) for cells in written]
        several = len(tables) > 1
        return (
            "\n\n".join(f"{lemma}\n\n{text}" if several else text for lemma, text in tables) + "\n"
        )
    if kind == "csv":
        return CSV_HEAD + "".join(map(as_csv, written))
    return "".join(json_line(as_record(cells)) for cells in written)
