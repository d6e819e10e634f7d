"""Paradigms: the cells of a lemma as tables and records, and word lists of many lemmas."""

from __future__ import annotations

import csv
import html
import io
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onmt_entmax.errors import UserError, counted, nearest, printable
from onmt_entmax.files import finite
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.details import left_out_text
from onmt_entmax.strings.task import encode_tag, split_tags
from onmt_entmax.strings.units import SPACE, encode_word

if TYPE_CHECKING:
    from onmt_entmax.inflector import Inflection


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
        title, row, column = _place(flat(cell.question.tags))
        if (row, column) in places.get(title, {}):  # the same tags, layered in another way
            title = (*title, ";".join(cell.question.tags))
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


_LAYERED = re.compile(r"([^()]+)\((.*)\)")


def flat(tags: Sequence[str]) -> list[str]:
    """Return tags with those of their layers beside each other, as a table shows them.

    `N;NOM(PL)` becomes N, NOM, PL. The subject of a finite verb, `V;PST;NOM(2,PL)`, becomes its
    person, number and gender; other arguments stay one tag, such as `ACC(3,SG)`, and so do
    possessors, `PSS(1,PL)` (UniMorph 4.0: Batsuren et al. 2022, section 3).
    """
    found: list[str] = []
    verb, agrees = bool(tags) and tags[0] in ("V", "AUX"), False
    # The subject is in the nominative; in ergative languages, it may be in another case.
    subject = next((tag for tag in tags if tag.startswith("NOM(")), "")
    for tag in tags:
        match = _LAYERED.fullmatch(tag)
        if match is None or _dimension(match[1]) != "case":
            found.append(tag)
            continue
        inner = [each for part in split_tags(match[2]) for each in split_tags(part, ",")]
        if not verb:
            found += [match[1], *inner]
        elif not agrees and tag == (subject or tag):
            agrees = True
            found += inner
        else:
            found.append(tag)
    return found


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
    names = list(map(_name, tags))
    parts = [n for n, tag in zip(names, tags, strict=True) if _dimension(tag) == "part of speech"]
    if len(parts) > 1:  # V;V.PTCP is a participle
        names.remove(parts[0])
    return between.join(names)


def _name(tag: str) -> str:
    """Return a tag for people; a layered one with the names of its layers in brackets."""
    if tag in dimensions():
        return dimensions()[tag][2]
    if match := _LAYERED.fullmatch(tag):
        head = "possessor" if match[1] == "PSS" else _name(match[1])
        inner = [each for part in split_tags(match[2]) for each in split_tags(part, ",")]
        return f"{head} ({' '.join(map(_name, inner))})"
    return tag


def cell_text(cell: Inflection) -> str:
    """Return a cell for people: its form; all forms with probabilities unless there is only one."""
    mark = " ?" if cell.warnings else ""
    more = "" if cell.complete else " ..."
    if not cell.forms:
        return "(none)" + more * bool(cell.left_out) + mark
    if cell.level == "only":
        return cell.forms[0].text + mark
    return " / ".join(f"{form.text} {_percent(form.prob)}" for form in cell.forms) + more + mark


def left_out_of(cells: Iterable[Inflection]) -> str:
    """Return how many forms of some cells were left out as improbable; nothing without any."""
    cut = LeftOut()
    for cell in cells:
        cut.add(cell)
    return cut.text()


def _percent(prob: float) -> str:
    """Return the probability of one form among several."""
    return "<1%" if prob < 0.005 else ">99%" if prob > 0.995 else f"{100 * prob:.0f}%"


def as_text(cells: Sequence[Inflection], width: int = sys.maxsize) -> str:
    """Return the tables with aligned columns, and how many forms were left out.

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
    return "\n\n".join([*blocks, *filter(None, [left_out_of(cells)])])


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


CSV_HEAD = "language,lemma,tags,form,probability,certificate,warnings,left_out\n"


def as_csv(cells: Iterable[Inflection]) -> str:
    """Return a line for each form, or for a cell without any, with the columns of `CSV_HEAD`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for cell in cells:
        asked = [cell.question.language, cell.question.lemma, ";".join(cell.question.tags)]
        for form in [(form.text, f"{form.prob:.6g}") for form in cell.forms] or [("", "")]:
            warnings = "; ".join(cell.warnings)
            writer.writerow([*asked, *form, cell.level, warnings, cell.left_out])
    return stream.getvalue()


def as_record(cells: Sequence[Inflection]) -> dict[str, Any]:
    """Return the tables as JSON has them, with every form, probability and certificate."""
    first = cells[0].question
    return {
        "language": first.language,
        "lemma": first.lemma,
        "least": cells[0].least,
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
                        "left_out": cell.left_out,
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
    bodies, title, least = list[str](), "", 0.0
    for cells in paradigms:
        first, least = cells[0].question, cells[0].least
        title = "paradigms" if bodies else f"{first.lemma} ({first.language})"
        tables = "\n".join(map(_table, sections(cells)))
        bodies.append(
            f"<h2><bdi>{html.escape(first.lemma)}</bdi> "
            f'<span class="muted">{html.escape(first.language)}</span></h2>\n'
            f'<div class="paradigms">{tables}</div>{_left_out_note(cells)}'
        )
    listed = f"probability {least:g} or more" if least else "positive probability"
    legend = (
        '<p class="muted">A form in green is the only one that the model can produce. Elsewhere '
        f"all forms of {listed} are listed; ... means that there are more, or may be, and ? "
        "a warning: point at the cell to read it.</p>"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body><main>\n"
        + "\n".join([legend, *bodies])
        + "\n</main></body>\n</html>\n"
    )


def _left_out_note(cells: Sequence[Inflection]) -> str:
    """Return a paragraph that says how many forms were left out; nothing without any."""
    text = left_out_of(cells)
    return f'\n<p class="muted">{text}</p>' if text else ""


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
    notes = filter(None, [*cell.warnings, left_out_of([cell])])
    tip = html.escape("; ".join([";".join(cell.question.tags), *notes]))
    mark = ' <b class="alarm">?</b>' if cell.warnings else ""
    if cell.level == "only" and cell.forms:
        inner = f"<bdi>{html.escape(cell.forms[0].text)}</bdi>"
        return f'<td class="only" title="{tip}">{inner}{mark}</td>'
    forms = "<br>".join(
        f'<bdi>{html.escape(form.text)}</bdi> <span class="muted">{_percent(form.prob)}</span>'
        for form in cell.forms
    )
    more = "" if cell.complete else " ..."
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


@dataclass
class LeftOut:
    """The forms of many cells that were left out as improbable."""

    forms: int = 0
    cells: int = 0
    """Cells that had some."""
    least: float = 0.0
    """The least probability."""

    def add(self, cell: Inflection) -> None:
        """Count those of a cell."""
        self.forms += cell.left_out
        self.cells += bool(cell.left_out)
        self.least = max(self.least, cell.least)

    def text(self) -> str:
        """Return how many there are; nothing without any."""
        return left_out_text(self.forms, self.least, "form") if self.forms else ""


class WordList:
    """All forms of many paradigms, and whether anything else is possible."""

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        """For each form the expected number of cells that have it."""
        self.lemmas: dict[str, str] = {}
        self.transitions: list[str] = []
        self._state = 0  # the last state of the automaton
        self.doubts = Doubts()
        self._missing, self._mass = 0, 1.0
        self._left_out = LeftOut()

    def add(self, cell: Inflection) -> None:
        """Add the forms of a cell."""
        self.doubts.add(cell)
        self._missing += cell.level not in ("only", "exhaustive")
        self._left_out.add(cell)
        self._mass = min(self._mass, sum(form.prob for form in cell.forms))
        question = cell.question
        for form in cell.forms:
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
        if text := self._left_out.text():
            reasons.append(f"{text} in {self._left_out.cells:,} of {cells}")
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


DIVIDING = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]")  # columns and lines
# A comment of Keyman's list, nothing, or more than one column or line.
_NO_ENTRY = re.compile(rf"^#|^$|{DIVIDING.pattern}")


def parts_of_speech(cells: Cells, language: str) -> dict[str, int]:
    """Return the parts of speech of a language with their number of cells."""
    return Counter(_part_of_speech(tags) for tags in cells.get(language, ()))


def _part_of_speech(tags: Sequence[str]) -> str:
    return tags[0].split(".")[0]  # forms of V.PTCP and their like are those of verbs


def cells_of(
    cells: Cells, language: str, pos: str | None, argument: str = "--pos"
) -> list[tuple[str, ...]]:
    """Return the tags of the cells of a language and part of speech, the most frequent first.

    The same tags in another order are the same cell; the first of them counts.

    Args:
        cells: of all languages.
        language: as the cells name it.
        pos: part of speech; None if there is only one.
        argument: that names the part of speech, for errors.

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
        raise UserError(f"{argument}: {language} has {known}; choose one")
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for tags in cells[language]:
        if _part_of_speech(tags) == pos:
            found.setdefault(tuple(sorted(tags)), tags)
    return list(found.values())


@dataclass(frozen=True, repr=False)
class Paradigm:
    """All cells of a lemma, each with its forms; a notebook shows it as tables.

    Attributes:
        cells: at least one, of one lemma.
    """

    cells: tuple[Inflection, ...]

    @property
    def complete(self) -> bool:
        """Whether no other form is possible in any cell."""
        return all(cell.complete for cell in self.cells)

    def at_least(self, prob: float) -> Paradigm:
        """Return the paradigm without the forms below a probability, which are counted."""
        return Paradigm(tuple(cell.at_least(prob) for cell in self.cells))

    def __repr__(self) -> str:
        return as_text(self.cells)

    def to_dict(self, n_best: int = 0) -> dict[str, Any]:
        """Return the tables as JSON has them, with forms, probabilities and certificates.

        Args:
            n_best: forms of a cell at most, the most probable ones; 0: all.
        """
        return finite(
            as_record([replace(cell, forms=cell.forms[: n_best or None]) for cell in self.cells])
        )

    def _repr_html_(self) -> str:
        """Return the tables for a notebook."""
        style = "<style>table.paradigm td.only { color: #1a7f37; }</style>"
        tables = "".join(map(_table, sections(self.cells)))
        return style + tables + _left_out_note(self.cells)
