"""The checkpoints of a run while it trains: each is saved once, and the best is named."""

import time

from onmt_entmax.checkpoint import Best, checkpoint_steps
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.multiplied_output import multiplied, restore_output
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.saved_state import SavedState
from onmt_entmax.train.state import TrainingState


class Checkpoints:
    """The checkpoints of a run.

    Args:
        run: the folder to write to.
        model: its weights are saved, or their average, with a calibrated output.
        state: the state of the training.
        processes: all call each method, and the first one writes.
    """

    def __init__(
        self, run: RunFolder, model: SparseNMTModel, state: TrainingState, processes: Processes
    ) -> None:
        self._run = run
        self._model = model
        self._state = state
        self._processes = processes
        # Steps of the last checkpoint, and of the last validation that it knows of.
        self._saved: tuple[int, int] | None = None

    def save(self) -> None:
        """Save a checkpoint, unless there is one of this state; name it if it is the best."""
        state = self._state
        if self._saved == self._steps():
            return
        started = time.monotonic()
        saved = state.state_dict()  # collective: gathers the random states of all processes
        if self._processes.writes:
            counters = state.counters
            with (
                state.average.applied() as raw_weights,
                multiplied(self._model.generator, counters.saved_factor) as raw_output,
            ):
                saved["raw_weights"] = raw_weights
                saved["raw_output"] = raw_output
                self._run.save(counters.step, self._model, saved)
        self._saved = self._steps()
        state.clock.saved(time.monotonic() - started)
        # Only now, so that best.json never names a missing checkpoint.
        if state.selection.best_step == state.counters.step:
            self.name_best()

    def name_best(self) -> None:
        """Write best.json, if there is a best checkpoint; delete the one that was the best."""
        selection = self._state.selection
        if not self._processes.writes or selection.best is None:
            return
        if selection.best_step in checkpoint_steps(self._run.path):
            best = Best(selection.best_step, selection.measure, selection.best)
            self._run.name_best(best, newest=self._state.counters.step)

    def restore(self, saved: SavedState) -> None:
        """Restore the training state of a checkpoint, whose weights the model has.

        Args:
            saved: the state. The checkpoint may be of another folder.
        """
        # `save` multiplies the output of the average.
        restore_output(self._model.generator, saved.get("raw_output"))
        self._state.average.restore(saved.get("raw_weights"))
        self._state.load_state_dict(saved)
        if self._state.counters.step in checkpoint_steps(self._run.path):
            self._saved = self._steps()

    def _steps(self) -> tuple[int, int]:
        """Return the steps of the run and of its last validation."""
        return self._state.counters.step, self._state.counters.validated
