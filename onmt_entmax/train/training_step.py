"""One update of a run: its batches and schedules, in all processes together.

`Update` computes gradient and step of the batches that it is given; which batches, learning rates
and dropout an update has is decided here. `Monitor` reads what updates report.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from onmt_entmax.config import TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.log import Log
from onmt_entmax.train.monitor import Monitor
from onmt_entmax.train.optimiser import learning_rate_schedule, learning_rates
from onmt_entmax.train.schedules import value_at
from onmt_entmax.train.state import TrainingState
from onmt_entmax.train.tf32 import tf32_products
from onmt_entmax.train.update import Update, normaliser


class TrainingStep:
    """The updates of a run, one at a time.

    Args:
        model: trained in place, on its device.
        config: see `TrainingConfig`.
        shapes: the shapes to pad batches to, see `Update`; None trains on them as they are.
        state: the state of the training; updates are counted here.
        monitor: reads the reports of updates.
        log: receives how long updates waited for batches; None in all processes but the first.
        processes: the processes of the run.

    Attributes:
        update: gradient and step of given batches.
        learning_rate: that of the last update.
    """

    def __init__(
        self,
        *,
        model: SparseNMTModel,
        config: TrainingConfig,
        shapes: Shapes | None,
        state: TrainingState,
        monitor: Monitor,
        log: Log | None,
        processes: Processes,
    ) -> None:
        self._model = model
        self._config = config
        self._state = state
        self._monitor = monitor
        self._log = log
        self._processes = processes
        vocabularies = state.batches.data.vocabularies
        self.update = Update(model, state.optimizer, config, vocabularies, shapes)
        self.learning_rate = 0.0
        self._schedule = learning_rate_schedule(config.optimizer, config.train_steps)

    def take(self, stream: Iterator[Batch], received: Sequence[int]) -> None:
        """Take one step on the gradient of the next batches of all processes together.

        Args:
            stream: all processes read the same batches, and compute every `count`-th of them.
            received: signals that this process has received.

        Raises:
            UserError: see `Monitor.read`.
            TooLargeError: a batch does not fit in memory.
        """
        batches = self._next_batches(stream)
        self._set_dropout()
        self._state.clock.begin_update()
        with (
            named_exhaustion(
                partial(self._state.batches.longest_line, batches),
                "leave long lines out with transforms: [filtertoolong], src_seq_length and "
                "tgt_seq_length, or make batch_size smaller",
            ),
            tf32_products(self._config.matmul_dtype == "tf32"),
        ):
            self._add_gradients(batches, received)
            self._change_weights()
        self._monitor.read()
        self._state.counters.step += 1

    def _next_batches(self, stream: Iterator[Batch]) -> list[Batch]:
        """Return the batches of an update, of all processes together."""
        began_to_wait = time.monotonic()
        step = self._state.counters.step
        count = value_at(self._config.accum_count, self._config.accum_steps, step)
        batches = list(islice(stream, count))
        if self._log is not None:
            self._log.waited(time.monotonic() - began_to_wait)
        return batches

    def _set_dropout(self) -> None:
        """Set the dropout of an update, if it changes during the run."""
        config, step = self._config, self._state.counters.step
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
            update.report_seconds(self._state.clock.elapsed())
        processes.sum(update.measured)  # in place
        processes.sum_gradients(update.parameters)

    def _change_weights(self) -> None:
        """Change the weights and their average by the gradients; send the report on its way."""
        counters = self._state.counters
        step = counters.step + 1
        factor = self._schedule(step, self._state.clock.passed()) * counters.decay
        rates = learning_rates(self._config.optimizer, factor)
        self.learning_rate = rates[0]
        self._monitor.reports.send(step, self.update.step(rates))
        self._state.average.update(step, self.update.finite)
