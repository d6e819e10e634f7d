"""Tables as text."""

from onmt_entmax.report.tables import aligned_table, markdown_table


def test_a_table_in_markdown() -> None:
    lines = markdown_table(["a", "b"], [["x|y", "1"], ["z", "23"]]).splitlines()
    assert lines == ["| a | b |", "| --- | ---: |", "| x\\|y | 1 |", "| z | 23 |"]


def test_columns_are_aligned() -> None:
    rows = [["run", "state", "step"], ["a long name", "done", "7"], ["b", "", ""]]
    assert aligned_table(rows, left=2).splitlines() == [
        "run          state  step",
        "a long name  done      7",
        "b",
    ]
