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


def latex_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular, which needs the package booktabs."""
    rows = [_latex_row(line) for line in lines]
    body = [r"\toprule", _latex_row(head), r"\midrule", *rows, r"\bottomrule"]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row of a tabular."""
    return " & ".join(cell.translate(_ESCAPES) for cell in cells) + r" \\"
