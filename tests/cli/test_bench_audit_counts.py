"""The benchmark of `audit`: precision and recall of lists of suspects."""

from onmt_entmax.cli.audited_rows import AuditedRow
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tools.bench.audit import Counts

NAME = "suspects"  # of the list; the other cells are listed rows, found errors, precision, recall


def suspect(line: int) -> AuditedRow:
    """Return a row of a list; of its content, only the number of its line matters."""
    row = Row(line, Query("kitap", ("N",), "x"), "kitabı", ())
    return AuditedRow(row, INFLECTION, log_prob=None, record={})


def test_rows_and_errors_of_all_seeds_are_counted() -> None:
    """Of five listed rows three are errors, and of six errors three are listed."""
    counts = Counts()
    counts.add([suspect(7), suspect(8)], errors=frozenset({7, 9}))
    counts.add([suspect(1), suspect(2), suspect(3)], errors=frozenset({1, 2, 4, 5}))
    assert counts.cells(NAME) == [NAME, "5", "3 of 6", "60 %", "50 %"]


def test_an_empty_list_has_a_precision_and_a_recall_of_0() -> None:
    counts = Counts()
    counts.add([], errors=frozenset({7}))
    assert counts.cells(NAME) == [NAME, "0", "0 of 1", "0 %", "0 %"]
