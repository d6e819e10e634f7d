"""A training run from its configuration to its checkpoints.

It reads the data, starts anew or resumes from a compatible checkpoint, and calls the trainer. The
command `train` and `train_model` run it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    CheckpointError,
    checkpoint_steps,
    read_best,
    with_subword_files,
)
from onmt_entmax.config import TrainingConfig, TrainingSetup, ValidationConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.devices import choose_device
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.log import Log
from onmt_entmax.train.measures import measure_text
from onmt_entmax.train.next_command import next_command
from onmt_entmax.train.overwriting import clean_folder
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.resuming import resume
from onmt_entmax.train.run_data import read_data
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.run_lock import alone
from onmt_entmax.train.run_network import starting_network
from onmt_entmax.train.shared import connected, shared_updates
from onmt_entmax.train.trained_cells import trained_cells
from onmt_entmax.train.trainer import Outcome, Trainer
from onmt_entmax.train.validation import Evaluate

# Between the seeds of two processes: far, since the seeds that people choose are often neighbours.
_SEEDS_APART = 1_000_003
Tell = Callable[[str], None]


def run_training(setup: TrainingSetup, began: float | None = None) -> int:
    """Train a model, from the start or from a checkpoint.

    Args:
        setup: the configurations of the run; its notes and warnings are for the caller to print.
        began: when the command began, in seconds of `time.monotonic`, from which `max_seconds`
            count; None: now.

    Returns:
        The exit status: 0, or 128 plus the signal that ended the run.

    Raises:
        UserError: for everything that the user can fix.
    """
    began = time.monotonic() if began is None else began
    processes = Processes()
    device = choose_device(processes, setup.run.gpu, "gpu_ranks")
    training = _without_tf32_on_cpu(device, setup.training, processes.say)
    training = shared_updates(
        training, setup.run.world_size, setup.data, processes.count, processes.say
    )
    record, subword_files = with_subword_files(setup.record)
    setup = replace(setup, training=training, record=record)
    this_run = _Run(setup, subword_files, processes, device)
    folder = Path(setup.run.save_model)
    with connected(processes, device, folder), alone(folder, processes) as check_unchanged:
        # Nothing is deleted before all is read: a run that cannot start leaves an earlier one.
        inputs = this_run.read()
        run_folder = this_run.prepare_folder(inputs, check_unchanged)
        outcome = this_run.train(inputs, run_folder, began)
    if outcome.signal is not None:
        processes.say(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {folder}")
        processes.say(f"continue with the same command and -train_from {folder}")
        return 128 + outcome.signal  # as shells have it
    _tell_result(folder, outcome, setup.validation, processes.say)
    processes.say(f"next: {inputs.next_command}")
    return 0


def _without_tf32_on_cpu(
    device: torch.device, training: TrainingConfig, tell: Tell
) -> TrainingConfig:
    """Return the configuration without tf32 on a CPU, which has no such products."""
    if training.matmul_dtype != "tf32" or device.type == "cuda":
        return training
    tell("warning: matmul_dtype: tf32 is of GPUs; float32 on the CPU")
    return replace(training, matmul_dtype="float32")


class _Inputs(NamedTuple):
    """What a run reads before it writes anything."""

    resumed: Resumed | None
    """The checkpoint to continue from; None for a new run"""
    corpora: TrainingData
    network: SparseNMTModel
    evaluate: Evaluate | None
    """Measures the network on the development set; None without one"""
    next_command: str
    """How to use the model, with an example of the data"""


@dataclass(frozen=True)
class _Run:
    """A run in one of its processes.

    `read`, `prepare_folder` and `train` are called once, in this order: the first deletes nothing,
    the second deletes what the run replaces, the third writes checkpoints.

    Attributes:
        setup: the configurations, as the processes and the device allow; its record is that of
            checkpoints, with the names of their subword files.
        subword_files: files of each checkpoint, by name.
        processes: of the run.
        device: of this process.
    """

    setup: TrainingSetup
    subword_files: Mapping[str, bytes]
    processes: Processes
    device: torch.device

    def read(self) -> _Inputs:
        """Read checkpoint, data and network, each of which needs those before it.

        Raises:
            UserError: one of them cannot be read, or they do not fit together.
        """
        setup, run, tell = self.setup, self.setup.run, self.processes.say
        resumed = resume(setup, tell)
        corpora = read_data(setup, resumed, tell)
        network = starting_network(setup, corpora, resumed, self.device, tell)
        # Weights are drawn from the same seed in all processes, dropout masks from here on are not.
        if self.processes.rank > 0:
            torch.manual_seed(run.seed + _SEEDS_APART * self.processes.rank)
        evaluate = None
        if setup.data.valid is not None:
            evaluate = make_evaluate(corpora, setup.validation, tell)
        # When training ends, the files of the data may be gone.
        command = next_command(Path(run.save_model), corpora)
        return _Inputs(resumed, corpora, network, evaluate, command)

    def prepare_folder(self, inputs: _Inputs, check_unchanged: Callable[[], None]) -> RunFolder:
        """Delete what the run replaces in its folder, and return the folder.

        Args:
            inputs: all of the run.
            check_unchanged: see `RunFolder`.
        """
        if self.processes.writes:
            clean_folder(self.setup.run, inputs.corpora, inputs.resumed, self.processes.say)
        return RunFolder(
            path=Path(self.setup.run.save_model),
            config=self.setup.model,
            vocabularies=inputs.corpora.vocabularies,
            options=self.setup.record,
            keep=self.setup.run.keep_checkpoint,
            others=self._files(inputs) if self.processes.writes else None,
            check_unchanged=check_unchanged,
        )

    def _files(self, inputs: _Inputs) -> dict[str, bytes]:
        """Return the further files of each checkpoint, by name: subwords, cells of inflection."""
        cells = trained_cells(inputs.corpora, inputs.resumed, self.processes.say)
        cells_file = {CELLS: cells_text(cells).encode()} if cells else {}
        return {**self.subword_files, **cells_file}

    def train(self, inputs: _Inputs, folder: RunFolder, began: float) -> Outcome:
        """Train the network, and return how the run ended.

        Args:
            inputs: of the run; its network is trained in place.
            folder: prepared for this run.
            began: see `run_training`.
        """
        resumed = inputs.resumed
        # The log drops the measurements of later steps, so it is opened in a prepared folder.
        with self._opened_log(resumed) as log:
            trainer = Trainer(
                model=inputs.network,
                batches=TrainingBatches(inputs.corpora, self.setup.data.num_workers),
                config=self.setup.training,
                evaluate=inputs.evaluate,
                run=folder,
                log=log,
                processes=self.processes,
            )
            if trainer.no_graphs is not None:
                self.processes.say(f"note: updates without CUDA graphs: {trainer.no_graphs}")
            if resumed is not None and resumed.state is not None:
                trainer.load_state_dict(resumed.state)
            return trainer.train(began)

    @contextmanager
    def _opened_log(self, resumed: Resumed | None) -> Iterator[Log | None]:
        """Open the log, which continues that of the checkpoint; None if this process writes none.

        Args:
            resumed: the checkpoint to continue from; None for a new run.
        """
        if not self.processes.writes:
            yield None
            return
        log = Log(
            run=Path(self.setup.run.save_model),
            first=0 if resumed is None else resumed.step,
            config=self.setup.training,
            alpha=self.setup.model.generator_alpha,
            tensorboard=self.setup.run.tensorboard,
        )
        with closing(log):
            yield log


def _tell_result(folder: Path, outcome: Outcome, validation: ValidationConfig, tell: Tell) -> None:
    """Say how a run ended, and name its best checkpoint, or the last one without a best."""
    tell(f"finished at step {outcome.step} ({outcome.reason})")
    try:
        best = read_best(folder)
    except CheckpointError:  # damaged
        best = None
    if best is None or best.step not in checkpoint_steps(folder):
        tell(f"last checkpoint: {folder}/step_{outcome.step}")
        return
    value = measure_text(best.metric, best.value)
    conditions = validation.conditions(best.metric)
    how = f" ({conditions})" if conditions else ""
    tell(f"best checkpoint: {folder}/step_{best.step}, {value} on the development set{how}")
