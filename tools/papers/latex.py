"""Tables in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from tools.papers.text_table import Table

# LaTeX's special characters, and the characters of our tables that text fonts lack.
_ESCAPES = str.maketrans(
    {
        **{character: rf"\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "α": r"$\alpha$",
    }
)


def latex_table(table: Table) -> str:
    """Return a table as a LaTeX tabular, which needs the package booktabs.

    The first column is left-aligned, the others right-aligned.
    """
    lines = [_latex_row(row) for row in table.rows]
    body = [r"\toprule", _latex_row(table.head), r"\midrule", *lines, r"\bottomrule"]
    columns = "l" + "r" * (len(table.head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row of a tabular."""
    return " & ".join(cell.translate(_ESCAPES) for cell in cells) + r" \\"
