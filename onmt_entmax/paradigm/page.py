"""A paradigm as HTML: a page, and tables for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.counts import left_out_of
from onmt_entmax.paradigm.sections import Section, sections
from onmt_entmax.paradigm.texts import percent

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>
{content}
</main></body>
</html>
"""


def html_page(paradigms: Iterable[str], title: str, least: float) -> str:
    """Return a page with the paradigms of some lemmas; a browser shows it without a network.

    Args:
        paradigms: the paradigm of each lemma, as `as_html` returns it.
        title: title of the page, as text.
        least: probability below which forms were left out, for the legend.
    """
    style = files("onmt_entmax.report").joinpath("page.css").read_text(encoding="utf-8")
    content = "\n".join([_legend(least), *paradigms])
    return _PAGE.format(title=html.escape(title), style=style, content=content)


def _legend(least: float) -> str:
    """Return a paragraph that explains the tables.

    Args:
        least: probability below which forms are left out.
    """
    listed = f"probability {least:g} or more" if least else "positive probability"
    return (
        '<p class="muted">A form in green is the only one that the model can produce. Elsewhere '
        f"all forms of {listed} are listed; ... means that there are more, or may be, and ? "
        "a warning: point at the cell to read it.</p>"
    )


def as_html(cells: Sequence[Inflection]) -> str:
    """Return the heading and the tables of one lemma."""
    first = cells[0].question
    tables = "\n".join(map(section_table, sections(cells)))
    return (
        f"<h2><bdi>{html.escape(first.lemma)}</bdi> "
        f'<span class="muted">{html.escape(first.language)}</span></h2>\n'
        f'<div class="paradigms">{tables}</div>{left_out_note(cells)}'
    )


def left_out_note(cells: Sequence[Inflection]) -> str:
    """Return a paragraph that says how many forms were left out; empty if none were."""
    text = left_out_of(cells)
    return f'\n<p class="muted">{html.escape(text)}</p>' if text else ""


def section_table(section: Section) -> str:
    """Return one table with its title."""
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in section.columns)
    lines = [f"<tr><td></td>{head}</tr>"] if any(section.columns) else []
    for row, line in section.lines():
        entries = "".join("<td></td>" if cell is None else _entry(cell) for cell in line)
        lines.append(f'<tr><th scope="row">{html.escape(row)}</th>{entries}</tr>')
    return (
        f"<section><h3>{html.escape(section.title)}</h3>\n"
        f'<div class="scroll"><table class="paradigm">{"".join(lines)}</table></div></section>'
    )


def _entry(cell: Inflection) -> str:
    """Return a cell of a table; pointing at it shows its tags and warnings."""
    notes = filter(None, [*cell.warnings, left_out_of([cell])])
    tip = html.escape("; ".join([";".join(cell.question.tags), *notes]))
    mark = ' <b class="alarm">?</b>' if cell.warnings else ""
    if cell.level == "only" and cell.forms:
        inner = f"<bdi>{html.escape(cell.forms[0].text)}</bdi>"
        return f'<td class="only" title="{tip}">{inner}{mark}</td>'
    forms = "<br>".join(
        f'<bdi>{html.escape(form.text)}</bdi> <span class="muted">{percent(form.prob)}</span>'
        for form in cell.forms
    )
    more = "" if cell.complete else " ..."
    return f'<td title="{tip}">{forms or "(none)"}{more}{mark}</td>'
