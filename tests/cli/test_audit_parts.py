"""The parts of an audit: which rows are held out together, and which are trained on."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.strings.tables import Row
from tests.cli.tables import write_table
from tests.cli.untrained_audits import audit_without_models

# A table of three parts:
#
#     lines  1 to 24   ba bed V;PST   ba bt V;PST   ba bs V;PRS   ca ced V;PST   ...
#     lines 25 to 48   the same rows again: copies, which are trained on but never held out
#     lines 49 to 64   ba bed PST;V   ba bt PST;V   ca ced PST;V   ...
#
# The last part has the rows of the past with their tags in the other order. These are different
# rows, but they belong to the same cells.
STEMS = "bcdfghjk"
ENDINGS = (("ed", "PST"), ("t", "PST"), ("s", "PRS"))
ROWS = [f"{stem}a\t{stem}{end}\tV;{tag}" for stem in STEMS for end, tag in ENDINGS]
REORDERED = [row.replace("V;PST", "PST;V") for row in ROWS if row.endswith("PST")]
LINES = [*ROWS, *ROWS, *REORDERED]
# The numbers of the lines of different rows; those between are copies.
ROW_NUMBERS = range(1, len(ROWS) + 1)
REORDERED_NUMBERS = range(2 * len(ROWS) + 1, len(LINES) + 1)


def cell_of(row: Row) -> tuple[str, frozenset[str]]:
    """Return the cell of a row: its lemma and tags, whose order does not matter."""
    return row.query.source, frozenset(row.query.tags)


class Audited(NamedTuple):
    """An audit of `LINES`.

    Attributes:
        folds: the value of `--folds`.
        parts: the parts of the table.
        to_look_at: number of rows in the list for a speaker.
    """

    folds: int
    parts: list[Part]
    to_look_at: int


@pytest.fixture(params=[2, 5])
def audited(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Audited:
    table = write_table(tmp_path / "table", *LINES)
    arguments = [table, "--out", tmp_path / "out", "--folds", request.param]
    arguments += ["--ask", len(LINES)]  # all rows that there are to look at
    parts, _ = audit_without_models(monkeypatch, arguments)
    listed = (tmp_path / "out" / "ask.tsv").read_text().splitlines()
    return Audited(request.param, parts, len(listed))


def test_there_are_as_many_parts_as_folds(audited: Audited) -> None:
    assert len(audited.parts) == audited.folds


def test_each_different_row_is_held_out_once(audited: Audited) -> None:
    numbers = sorted(row.number for part in audited.parts for row in part.held_out)
    assert numbers == [*ROW_NUMBERS, *REORDERED_NUMBERS]


def test_each_different_row_may_be_listed_for_a_speaker(audited: Audited) -> None:
    assert audited.to_look_at == len(ROW_NUMBERS) + len(REORDERED_NUMBERS)


def test_forms_of_a_cell_are_held_out_together(audited: Audited) -> None:
    for part in audited.parts:
        assert not set(map(cell_of, part.train)) & set(map(cell_of, part.held_out))


def test_all_rows_of_other_cells_are_trained_on(audited: Audited) -> None:
    """Copies of these rows are trained on, too."""
    rows = {row.number: row for part in audited.parts for row in (*part.train, *part.held_out)}
    assert rows.keys() == set(range(1, len(LINES) + 1))
    for part in audited.parts:
        held_out = set(map(cell_of, part.held_out))
        others = {number for number, row in rows.items() if cell_of(row) not in held_out}
        assert {row.number for row in part.train} == others
