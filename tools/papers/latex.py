"""Tables in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence


def latex_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular, which needs the package booktabs."""
    rows = [_latex_row(line) for line in lines]
    body = [r"\toprule", _latex_row(head), r"\midrule", *rows, r"\bottomrule"]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row of a tabular, with the signs that mean something in LaTeX escaped."""
    text = " & ".join(cells).replace("%", r"\%").replace("_", r"\_")
    return text.replace("±", r"$\pm$").replace("α", r"$\alpha$") + r" \\"
