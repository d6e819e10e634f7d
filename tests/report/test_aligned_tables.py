"""Tables of figures as text."""

from onmt_entmax.report.tables import aligned_table


def test_columns_are_aligned_below_their_headings() -> None:
    rows = [["language", "right"], ["deu", "5"]]
    assert aligned_table(rows) == "language  right\ndeu           5"


def test_a_line_end_in_a_cell_is_escaped() -> None:
    """A language in a stranger's table may have one, and each row must be one line."""
    assert aligned_table([["a\u2028b", "1"]]) == "a\\u2028b  1"
