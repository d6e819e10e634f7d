"""Tables in LaTeX: characters that have a meaning there are escaped."""

import pytest

from tools.papers.latex import latex_table
from tools.papers.text_table import Table


def row_of(cell: str) -> str:
    """Return the row of a table of two columns, of which the second cell is `1`."""
    table = Table(["model", "accuracy"], [[cell, "1"]])
    *_, row, _bottomrule, _end = latex_table(table).splitlines()
    return row


@pytest.mark.parametrize(
    ("cell", "escaped"),
    [
        ("R&D", r"R\&D"),
        ("50 %", r"50 \%"),
        ("a_b", r"a\_b"),
        ("$5 #1 {x}", r"\$5 \#1 \{x\}"),
        (r"~^\n", r"\textasciitilde{}\textasciicircum{}\textbackslash{}n"),
        ("1 ± α", r"1 $\pm$ $\alpha$"),
    ],
)
def test_special_characters_are_escaped(cell: str, escaped: str) -> None:
    assert row_of(cell) == rf"{escaped} & 1 \\"
