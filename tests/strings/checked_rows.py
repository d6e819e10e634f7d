"""Tables without a mistake, and the rows of tables, for tests of their checks."""

from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.tables import Row, rows_of
from onmt_entmax.strings.task import StringTask
from onmt_entmax.strings.units import Unit

INFLECTION = StringTask(("source", "target", "tags"))
FORMS = ["draw\tdrew\tV;PST", "go\twent\tV;PST", "walk\twalks\tV;PRS"]
PRONUNCIATION = StringTask(target=Unit.between(" "))
PHONES = ["abil\ta b i l", "ploaie\tp lʷ a j e"]


def rows_in(lines: list[str], task: StringTask) -> list[Row]:
    """Return the rows of a table for a task; all of its lines must be readable."""
    rows = []
    for row in rows_of(lines, guess_layout(lines, "x", task.columns), task):
        assert isinstance(row, Row), row
        rows.append(row)
    return rows
