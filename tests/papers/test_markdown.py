"""Tables of strings in Markdown."""

import pytest

from tools.papers.markdown import markdown_table
from tools.papers.text_table import Table


def test_only_the_first_column_is_left_aligned() -> None:
    table = Table(["model", "accuracy"], [["softmax", "80"], ["entmax", "85"]])
    assert markdown_table(table).splitlines() == [
        "| model | accuracy |",
        "| --- | ---: |",
        "| softmax | 80 |",
        "| entmax | 85 |",
    ]


def test_a_vertical_bar_in_a_cell_is_escaped() -> None:
    *_, row = markdown_table(Table(["tags", "words"], [["Case=Nom|Number=Sing", "1"]])).splitlines()
    assert row == r"| Case=Nom\|Number=Sing | 1 |"


@pytest.mark.parametrize("row", [["softmax"], ["softmax", "80", "81"]], ids=["short", "long"])
def test_a_row_has_a_cell_for_each_heading(row: list[str]) -> None:
    with pytest.raises(AssertionError, match="2 headings"):
        Table(["model", "accuracy"], [row])
