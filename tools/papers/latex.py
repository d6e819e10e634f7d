"""Tables in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

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


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular, which needs the package booktabs."""
    lines = [_latex_row(row) for row in rows]
    body = [r"\toprule", _latex_row(head), r"\midrule", *lines, r"\bottomrule"]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row of a tabular."""
    return " & ".join(cell.translate(_ESCAPES) for cell in cells) + r" \\"
