"""The validations of a run: measures on the development set, and what they change.

`evaluation.py` measures. A validation may lower the learning rate, find the best model so far, and
count for early stopping.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from onmt_entmax.config import TrainingConfig
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.log import Log
from onmt_entmax.train.state import TrainingState

Evaluate = Callable[[SparseNMTModel], dict[str, float]]
"""Returns the measures of a model on the development set, by name"""


class Validation:
    """The validations of a run that has a development set.

    Args:
        evaluate: returns at least `loss` and the selection measure, and, if it calibrates the
            model, `output_factor`. It is called in evaluation mode without gradients.
        model: in training.
        config: measure of the best model, and the schedule of the learning rate.
        state: the state of the training.
        log: None in all processes but the first.
        processes: all call `run`, and the first one evaluates.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        *,
        model: SparseNMTModel,
        config: TrainingConfig,
        state: TrainingState,
        log: Log | None,
        processes: Processes,
    ) -> None:
        self.evaluate = evaluate
        self._model = model
        self._config = config
        self._state = state
        self._log = log
        self._processes = processes

    def run(self, planned: bool) -> bool:
        """Evaluate the model; return whether it is the best so far.

        Args:
            planned: False for the extra validation at the end of a run. It changes neither the
                learning rate nor early stopping, so that a resumed run continues as if it had not
                stopped.
        """
        clock, selection = self._state.clock, self._state.selection
        values = self._measures()
        self._state.counters.output_factor = values.get("output_factor", 1.0)
        if planned:
            self._remember_loss(values["loss"])
        step = self._state.counters.step
        is_best = selection.judge(values[self._config.selection], step, planned)
        if self._log is not None:
            self._log.paused(clock.validating)
            logged = values | {"seconds": round(clock.seconds, 1)}
            self._log.validation(self._state.progress, logged, selection.best_step)
        return is_best

    def _measures(self) -> dict[str, float]:
        """Return the measures on the development set; note in the clock how long they took.

        The first process measures, and tells the others.
        """
        values: Any = None
        started = time.monotonic()
        if self._processes.writes:
            self._model.eval()
            with torch.no_grad(), self._state.average.applied():
                values = self.evaluate(self._model)
            self._model.train()
        seconds = time.monotonic() - started
        clock = self._state.clock
        values, clock.validating = self._processes.from_first([values, seconds])
        clock.share()
        return dict(values)

    def _remember_loss(self, loss: float) -> None:
        """Remember the loss of a planned validation; with `plateau`, lower the rate if it rose."""
        counters, optimizer = self._state.counters, self._config.optimizer
        rose = counters.previous_loss is not None and loss > counters.previous_loss
        if rose and optimizer.decay_method == "plateau":
            counters.decay *= optimizer.learning_rate_decay
        counters.previous_loss = loss
