"""A paradigm as CSV and JSON, for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from onmt_entmax.inflection import Inflection
from onmt_entmax.paradigm.sections import sections

CSV_HEAD = "language,lemma,tags,form,probability,certificate,warnings,left_out\n"


def as_csv(cells: Iterable[Inflection]) -> str:
    """Return a line for each form, and one for a cell without forms; `CSV_HEAD` has the columns."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for cell in cells:
        query = [cell.question.language, cell.question.lemma, ";".join(cell.question.tags)]
        forms = [(form.text, f"{form.prob:.6g}") for form in cell.forms] or [("", "")]
        for form in forms:
            writer.writerow([*query, *form, cell.level, "; ".join(cell.warnings), cell.left_out])
    return stream.getvalue()


def as_record(cells: Sequence[Inflection]) -> dict[str, Any]:
    """Return the tables of one lemma with all their forms, as values for JSON."""
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
                    {"row": row, "column": column, **_cell_record(cell)}
                    for (row, column), cell in section.cells.items()
                ],
            }
            for section in sections(cells)
        ],
    }


def _cell_record(cell: Inflection) -> dict[str, Any]:
    """Return a cell as values for JSON."""
    return {
        "tags": ";".join(cell.question.tags),
        "certificate": cell.level,
        "forms": [{"form": form.text, "prob": form.prob} for form in cell.forms],
        "warnings": cell.warnings,
        "left_out": cell.left_out,
    }
