"""One update of a run: its batches, its schedules, all processes, and the report that comes back.

`Update` computes gradient and step of the batches that it is given; which batches, learning rates
and dropout an update has is decided here. On a GPU the report of an update arrives some
updates later, so a signal, a loss that is not finite and the time of the run are noticed late, but
by all processes after the same update.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import torch

from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.contexts import tf32_products
from onmt_entmax.train.log import Log
from onmt_entmax.train.moving_average import MovingAverage
from onmt_entmax.train.nonfinite import NonFiniteUpdates
from onmt_entmax.train.optimiser import build_optimizer, learning_rate_schedule, learning_rates
from onmt_entmax.train.reports import Reports
from onmt_entmax.train.schedules import value_at
from onmt_entmax.train.state import RunState
from onmt_entmax.train.update import Update, normaliser


class TrainingStep:
    """The updates of a run, one at a time.

    Args:
        model: trained in place, on its device.
        batches: which line of the data is the longest of some batches, for errors.
        config: see `TrainingConfig`.
        vocabularies: give padding ids.
        shapes: to pad batches to, see `Update`; None trains on them as they are.
        state: its `step` and `skipped` are counted here.
        clock: of the run.
        nonfinite: decides about updates that are not finite.
        log: receives what updates measured; None in all processes but the first.
        processes: of the run.
        device: of the model.

    Attributes:
        optimizer: see `build_optimizer`.
        average: the moving average of the weights.
        update: gradient and step of given batches.
        reports: those that have not arrived yet.
        learning_rate: of the last update.
        received: the signal that any process has received, or 0.
    """

    def __init__(
        self,
        *,
        model: SparseNMTModel,
        batches: TrainingBatches,
        config: TrainingConfig,
        vocabularies: Vocabularies,
        shapes: Shapes | None,
        state: RunState,
        clock: Clock,
        nonfinite: NonFiniteUpdates,
        log: Log | None,
        processes: Processes,
        device: torch.device,
    ) -> None:
        self._model = model
        self._batches = batches
        self._config = config
        self._state = state
        self._clock = clock
        self._nonfinite = nonfinite
        self._log = log
        self._processes = processes
        self.optimizer = build_optimizer(model, config.optimizer)
        self.average = MovingAverage(model, config.average_decay, config.average_every)
        pads = vocabularies.source.pad, vocabularies.target.pad
        self.update = Update(model, self.optimizer, config, pads, shapes)
        self.reports = Reports(device)
        self.learning_rate = 0.0
        self.received = 0
        self._schedule = learning_rate_schedule(config.optimizer, config.train_steps)

    def take(self, stream: Iterator[Batch], received: Sequence[int]) -> None:
        """Take one step on the gradient of the next batches of all processes together.

        Args:
            stream: all processes read the same batches, and compute every `count`-th of them.
            received: signals that this process has received.

        Raises:
            UserError: see `read_reports`.
            TooLargeError: a batch does not fit in memory.
        """
        batches = self._next_batches(stream)
        self._set_dropout()
        self._clock.begin_update()
        with (
            named_exhaustion(
                partial(self._batches.longest_line, batches),
                "leave long lines out with transforms: [filtertoolong], src_seq_length and "
                "tgt_seq_length, or make batch_size smaller",
            ),
            tf32_products(self._config.matmul_dtype == "tf32"),
        ):
            self._add_gradients(batches, received)
            self._change_weights()
        self.read_reports()
        self._state.step += 1

    def _next_batches(self, stream: Iterator[Batch]) -> list[Batch]:
        """Return the batches of an update, of all processes together."""
        began_to_wait = time.monotonic()
        count = value_at(self._config.accum_count, self._config.accum_steps, self._state.step)
        batches = list(islice(stream, count))
        if self._log is not None:
            self._log.waited(time.monotonic() - began_to_wait)
        return batches

    def _set_dropout(self) -> None:
        """Set the dropout of an update, if it changes during the run."""
        config, step = self._config, self._state.step
        if len(config.dropout_steps) > 1:
            self._model.update_dropout(
                value_at(config.dropout, config.dropout_steps, step),
                value_at(config.attention_dropout, config.dropout_steps, step),
            )

    def _add_gradients(self, batches: Sequence[Batch], received: Sequence[int]) -> None:
        """Sum gradients and reports of these batches, over all processes."""
        processes, update = self._processes, self.update
        size = normaliser(batches, self._config.normalization)
        for batch in batches[processes.rank :: processes.count]:
            update.add(batch, size)
        if received:
            update.report_signal(received[0])
        if processes.writes:
            update.report_seconds(self._clock.elapsed())
        processes.sum(update.measured)  # in place
        processes.sum_gradients(update.parameters)

    def _change_weights(self) -> None:
        """Change the weights and their average by the gradients; send the report on its way."""
        step = self._state.step + 1
        factor = self._schedule(step, self._clock.passed()) * self._state.decay
        rates = learning_rates(self._config.optimizer, factor)
        self.learning_rate = rates[0]
        self.reports.send(step, self.update.step(rates))
        self.average.update(step, self.update.finite)

    def read_reports(self, everything: bool = False) -> None:
        """Take in the reports of updates that have arrived from the device, or wait for all.

        Only here does this process wait for the device, if Adam's step is fused; other optimisers
        wait in each update.

        Raises:
            UserError: an update was not finite, or many in a row, with on_nonfinite "skip".
        """
        for step, report in self.reports.read(everything):
            self._clock.seconds = report.seconds
            if report.signal:  # those of several processes add up, so the sum names none
                alone = self._processes.count == 1
                self.received = int(report.signal) if alone else signal.SIGTERM
            if not self._nonfinite.is_finite(step, report):
                self._state.skipped += 1
            elif self._log is not None:
                self._log.add(report.loss, report.tokens, report.correct, report.support)
