"""Updates whose loss or gradient is not finite: the first ends a run, or they are skipped."""

import math
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.train.reports import Report

MAX_SKIPPED = 100
"""The number of skipped updates in a row that ends a run, which is then unlikely to recover"""


class NonFiniteUpdates:
    """Checks the reports of updates; the optimiser has left out those that were not finite.

    Args:
        skip: whether a run goes on after them (`on_nonfinite: skip`).
        run: the run folder, for the error.
    """

    def __init__(self, skip: bool, run: Path) -> None:
        self._skip = skip
        self._run = run
        self._in_a_row = 0

    def is_finite(self, step: int, report: Report) -> bool:
        """Return whether update number `step` was finite; call it for each, in order.

        Raises:
            UserError: it was not, and the run ends; names the step.
        """
        if math.isfinite(report.loss) and math.isfinite(report.norm):
            self._in_a_row = 0
            return True
        self._in_a_row += 1
        if not self._skip or self._in_a_row == MAX_SKIPPED:
            raise self._error(step, report)
        return False

    def _error(self, step: int, report: Report) -> UserError:
        """Return the error that ends a run."""
        if math.isfinite(report.loss):
            problem = f"the gradient norm is {report.norm}"
        else:
            problem = f"the loss is {report.loss}"
        skipped = f" and {MAX_SKIPPED} updates in a row were skipped" if self._skip else ""
        return UserError(
            f"{problem} at step {step}{skipped}; lower the learning rate, or continue from a "
            f"checkpoint in {self._run}"
        )
