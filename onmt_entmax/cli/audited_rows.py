"""The rows that `audit` checked, and the choice of those that may be errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from onmt_entmax.errors import printable
from onmt_entmax.report.records import Record
from onmt_entmax.strings.scripts import script_mixtures
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask


@dataclass(frozen=True)
class AuditedRow:
    """A row of the table, and the predictions of a model that did not see it.

    Attributes:
        row: the row.
        task: task of the table.
        log_prob: log-probability of the row's form; None: the form has probability zero.
        record: record of the row in the exactness report of the search.
        copies: number of equal rows of the table, of which this is the first.
    """

    row: Row
    task: StringTask
    log_prob: float | None
    record: Record
    copies: int = 1

    @property
    def _hypotheses(self) -> list[dict[str, Any]]:
        """The forms that the search found, the most probable first."""
        hypotheses: list[dict[str, Any]] = self.record["hypotheses"]
        return hypotheses

    @property
    def certainty(self) -> float:
        """Probability of the most probable form; 0 if the search found none."""
        return float(self._hypotheses[0]["prob"]) if self._hypotheses else 0.0

    @property
    def best(self) -> str | None:
        """The most probable form; None if the search found none."""
        return self._form(self._hypotheses[0]) if self._hypotheses else None

    def _form(self, hypothesis: dict[str, Any]) -> str:
        """Return the form of a hypothesis of the record."""
        return self.task.target.decode(hypothesis["text"].split())

    def line(self) -> str:
        """Return the row and the forms that the model admits as a line of `suspects.tsv`."""
        admitted = ", ".join(
            f"{self._form(hypothesis)} {hypothesis['prob']:.3g}" for hypothesis in self._hypotheses
        )
        all_found = self.record["certificate"] == "exhaustive"
        if not all_found or self.record["finished"] > len(self._hypotheses):
            admitted += ", ..."
        texts = [*texts_of(self.row), admitted, self.record["certificate"]]
        return "\t".join(map(printable, texts))


def texts_of(row: Row) -> list[str]:
    """Return line, lemma, form and tags of a row."""
    return [str(row.number), row.query.source, row.target, ";".join(row.query.tags)]


def cell_of(row: Row) -> tuple[str, tuple[str, ...]]:
    """Return lemma and tags; the same tags in another order are the same cell."""
    return row.query.source, tuple(sorted(row.query.tags))


class ExcludedRows(NamedTuple):
    """Rows whose form has probability zero; the most certain predictions come first.

    Attributes:
        suspects: rows that may be errors.
        variants: rows whose cell may have two forms, since the table has the other one, too.
    """

    suspects: list[AuditedRow]
    variants: list[AuditedRow]


def excluded_rows(checked: Sequence[AuditedRow]) -> ExcludedRows:
    """Divide the rows whose form has probability zero into suspects and variants.

    Let the model exclude `dreamt`, and predict `dreamed`. If another row has `dreamed` for the same
    cell, `dreamt` is a variant, since a cell may have two forms. If more rows have `dreamed` than
    `dreamt`, it is a suspect: a slip in one of several copies. If no row has `dreamed`, it is a
    suspect, too.
    """
    copies: dict[object, int] = {
        (cell_of(audited.row), audited.row.target): audited.copies for audited in checked
    }
    excluded = [audited for audited in checked if audited.log_prob is None]
    suspects: list[AuditedRow] = []
    variants: list[AuditedRow] = []
    for audited in sorted(excluded, key=lambda audited: -audited.certainty):
        copies_of_best = copies.get((cell_of(audited.row), audited.best), 0)
        if 0 < copies_of_best <= audited.copies:
            variants.append(audited)
        else:
            suspects.append(audited)
    return ExcludedRows(suspects, variants)


def script_lines(checked: Sequence[AuditedRow]) -> list[str]:
    """Return the lines of `scripts.tsv`: the rows that mix scripts, and how."""
    mixed = script_mixtures([(audited.row.query.source, audited.row.target) for audited in checked])
    return [
        "\t".join(map(printable, [*texts_of(checked[number].row), text]))
        for number, text in mixed.items()
    ]
