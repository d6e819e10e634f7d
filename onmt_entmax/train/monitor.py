"""What a run learns from the reports of its updates: the time, signals, losses that are not finite.

On a GPU the report of an update arrives some updates later. So a run notices all this late, but all
its processes notice it after the same update.
"""

from signal import SIGTERM

import torch

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.log import Log
from onmt_entmax.train.nonfinite import NonFiniteUpdates
from onmt_entmax.train.reports import Report, Reports
from onmt_entmax.train.state import TrainingState


class Monitor:
    """Reads the reports of updates, and passes on what they say.

    Args:
        device: the device on which updates are computed.
        state: its clock is set here, and skipped updates are counted.
        nonfinite: decides about updates that are not finite.
        log: receives what updates measured; None in all processes but the first.
        processes: the processes of the run.

    Attributes:
        reports: the reports on their way from the device.
        received_signal: the number of the signal that any process has received, or 0.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        state: TrainingState,
        nonfinite: NonFiniteUpdates,
        log: Log | None,
        processes: Processes,
    ) -> None:
        self.reports = Reports(device)
        self.received_signal = 0
        self._state = state
        self._nonfinite = nonfinite
        self._log = log
        self._processes = processes

    def read(self, everything: bool = False) -> None:
        """Read the reports that have arrived from the device, or wait for all.

        Only here does this process wait for the device, if Adam's step is fused; other optimisers
        wait in each update.

        Raises:
            UserError: an update was not finite, or many in a row, with on_nonfinite "skip".
        """
        for step, report in self.reports.read(everything):
            self._state.clock.seconds = report.seconds
            if report.signal:
                self.received_signal = self._signal_in(report)
            if not self._nonfinite.is_finite(step, report):
                self._state.counters.skipped += 1
            elif self._log is not None:
                self._log.add(
                    loss=report.loss,
                    tokens=report.tokens,
                    correct=report.correct,
                    support=report.support,
                )

    def _signal_in(self, report: Report) -> int:
        """Return the number of the signal that a report tells of.

        In a report, the numbers of several processes add up, and the sum may be that of another
        signal. So with several processes, any signal counts as SIGTERM.
        """
        return int(report.signal) if self._processes.count == 1 else SIGTERM
