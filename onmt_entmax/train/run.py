"""A training run from its configuration to its checkpoints.

It reads the data, starts anew or resumes from a compatible checkpoint, and calls the trainer. The
command `train` and `train_model` run it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from onmt_entmax.checkpoint import (
    CELLS,
    CheckpointError,
    checkpoint_steps,
    read_best,
    with_subword_files,
)
from onmt_entmax.config import TrainingSetup, ValidationConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.parallel.devices import choose_device
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.train.connection import connected
from onmt_entmax.train.log import Log
from onmt_entmax.train.measures import measure_text
from onmt_entmax.train.overwriting import clean_folder, same_folder
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.run_inputs import RunInputs, read_inputs
from onmt_entmax.train.run_lock import alone
from onmt_entmax.train.shared_updates import with_shared_updates
from onmt_entmax.train.tf32 import without_tf32_on_cpu
from onmt_entmax.train.trained_cells import trained_cells
from onmt_entmax.train.trainer import Outcome, Trainer


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
    training = with_shared_updates(
        without_tf32_on_cpu(setup.training, device, processes.say),
        setup.data,
        world_size=setup.run.world_size,
        process_count=processes.count,
        tell=processes.say,
    )
    record, subword_files = with_subword_files(setup.record)
    setup = replace(setup, training=training, record=record)
    folder = Path(setup.run.save_model)
    with connected(processes, device, folder), alone(folder, processes) as check_unchanged:
        # Nothing is deleted before all is read: a run that cannot start leaves an earlier one.
        inputs = read_inputs(setup, processes, device)
        other_files = {}
        if processes.writes:
            clean_folder(setup.run, inputs.corpora, inputs.resumed, processes.say)
            other_files = subword_files | _cells_file(inputs, processes.say)
        run_folder = RunFolder(
            path=folder,
            config=setup.model,
            vocabularies=inputs.corpora.vocabularies,
            options=setup.record,
            keep=setup.run.keep_checkpoint,
            others=other_files,
            check_unchanged=check_unchanged,
        )
        outcome = _train(setup, inputs, run_folder, processes, began)
    if outcome.signal is not None:
        processes.say(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {folder}")
        processes.say(f"continue with the same command and -train_from {folder}")
        return 128 + outcome.signal  # as shells have it
    _tell_result(folder, outcome, setup.validation, processes.say)
    processes.say(f"next: {inputs.next_command}")
    return 0


def _cells_file(inputs: RunInputs, tell: Callable[[str], None]) -> dict[str, bytes]:
    """Return the file of a checkpoint that names the cells of inflection; none for other tasks."""
    cells = trained_cells(inputs.corpora, inputs.resumed, tell)
    return {CELLS: cells_text(cells).encode()} if cells else {}


def _train(
    setup: TrainingSetup,
    inputs: RunInputs,
    folder: RunFolder,
    processes: Processes,
    began: float,
) -> Outcome:
    """Train the network, and return how the run ended.

    Args:
        setup: the configurations, as the processes and the device allow.
        inputs: the inputs of the run; their network is trained in place.
        folder: the folder to write to, without what the run replaces.
        processes: the processes of the run.
        began: see `run_training`.
    """
    resumed = inputs.resumed
    with _opened_log(setup, resumed, processes) as log:
        trainer = Trainer(
            model=inputs.network,
            batches=TrainingBatches(inputs.corpora, setup.data.num_workers),
            config=setup.training,
            evaluate=inputs.evaluate,
            run=folder,
            log=log,
            processes=processes,
        )
        if trainer.no_graphs is not None:
            processes.say(f"note: updates without CUDA graphs: {trainer.no_graphs}")
        if resumed is not None and resumed.state is not None:
            trainer.load_state_dict(resumed.state)
        return trainer.train(began)


@contextmanager
def _opened_log(
    setup: TrainingSetup, resumed: Resumed | None, processes: Processes
) -> Iterator[Log | None]:
    """Open the log of a run, which drops what its folder has of later steps or of another run.

    Args:
        setup: the configurations of the run.
        resumed: the checkpoint to continue from; None for a new run.
        processes: the processes of the run.

    Yields:
        The log; None in a process that does not write.
    """
    if not processes.writes:
        yield None
        return
    first = 0 if resumed is None else resumed.step
    log = Log(
        run=Path(setup.run.save_model),
        first=first,
        kept=first if same_folder(setup.run) else 0,
        config=setup.training,
        alpha=setup.model.generator_alpha,
        tensorboard=setup.run.tensorboard,
    )
    with closing(log):
        yield log


def _tell_result(
    folder: Path, outcome: Outcome, validation: ValidationConfig, tell: Callable[[str], None]
) -> None:
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
