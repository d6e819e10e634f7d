"""A training run from its configuration to its checkpoints.

It reads the data, starts anew or resumes from a compatible checkpoint, and calls the trainer. The
command `train` and `train_model` run it.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    best_step,
    checkpoint_steps,
    read_best,
    with_subword_files,
)
from onmt_entmax.config import DataConfig, ModelConfig, RunConfig, TrainingConfig, VocabularyConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.train.evaluation import ValidationConfig, make_evaluate
from onmt_entmax.train.log import Log
from onmt_entmax.train.next_command import next_command
from onmt_entmax.train.overwriting import clean_folder
from onmt_entmax.train.progress import measure_text
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.resuming import resume
from onmt_entmax.train.run_data import read_data, trained_cells
from onmt_entmax.train.run_folder import RunFolder, alone
from onmt_entmax.train.run_network import starting_network
from onmt_entmax.train.shared import connected, shared_updates
from onmt_entmax.train.trainer import Outcome, Trainer

# Between the seeds of two processes: far, since the seeds that people choose are often neighbours.
_SEEDS_APART = 1_000_003
Tell = Callable[[str], None]


def run_training(
    *,
    run: RunConfig,
    data: DataConfig,
    vocabulary: VocabularyConfig,
    model: ModelConfig,
    training: TrainingConfig,
    validation: ValidationConfig,
    record: Mapping[str, Any],
    began: float | None = None,
) -> int:
    """Train a model, from the start or from a checkpoint.

    Args:
        run: folder, start and device.
        data: corpora and batches.
        vocabulary: files and sizes of the vocabularies.
        model: the network.
        training: loss, limits and schedule.
        validation: measures on the development set.
        record: every option by name, saved with each checkpoint, as are the subword files.
        began: when the command began, in seconds of `time.monotonic`, from which `max_seconds`
            count; None: now.

    Returns:
        The exit status: 0, or 128 plus the signal that ended the run.

    Raises:
        UserError: for everything that the user can fix.
    """
    began = time.monotonic() if began is None else began
    processes = Processes()
    tell: Tell = processes.say
    device = processes.device(run.gpu, "gpu_ranks")
    training = _with_products_of(device, training, tell)
    training = shared_updates(training, run.world_size, data, processes.count, tell)
    folder = Path(run.save_model)
    record, other_files = with_subword_files(record)
    with connected(processes, device, folder), alone(folder, processes) as unchanged:
        resumed = resume(run, model, training, record, tell)
        corpora = read_data(run, data, vocabulary, resumed, tell)
        network = starting_network(run, model, training.optimizer, corpora, resumed, device, tell)
        if processes.rank > 0:  # each process draws its own dropout masks
            torch.manual_seed(run.seed + _SEEDS_APART * processes.rank)
        evaluate = None if data.valid is None else make_evaluate(corpora, validation, tell)
        next_step = next_command(folder, corpora)
        if processes.writes:
            clean_folder(run, corpora, resumed, tell)
            cells = trained_cells(corpora, resumed, tell)
            if cells:
                other_files[CELLS] = cells_text(cells).encode()
        log = _open_log(run, model, training, resumed) if processes.writes else None
        with nullcontext() if log is None else closing(log):
            trainer = Trainer(
                model=network,
                batches=TrainingBatches(corpora, data.num_workers),
                config=training,
                evaluate=evaluate,
                run=RunFolder(
                    path=folder,
                    config=model,
                    vocabularies=corpora.vocabularies,
                    options=record,
                    keep=run.keep_checkpoint,
                    others=other_files,
                    unchanged=unchanged,
                ),
                log=log,
                processes=processes,
            )
            if trainer.no_graphs is not None:
                tell(f"note: updates without CUDA graphs: {trainer.no_graphs}")
            if resumed is not None and resumed.state is not None:
                trainer.load_state_dict(resumed.state)
            outcome = trainer.train(began)
    if outcome.signal is not None:
        tell(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {folder}")
        tell(f"continue with the same command and -train_from {folder}")
        return 128 + outcome.signal  # as shells have it
    _tell_result(folder, outcome, validation, tell)
    tell(f"next: {next_step}")
    return 0


def _with_products_of(device: torch.device, training: TrainingConfig, tell: Tell) -> TrainingConfig:
    """Return the configuration with products that the device has: a CPU has no tf32."""
    if training.matmul_dtype != "tf32" or device.type == "cuda":
        return training
    tell("warning: matmul_dtype: tf32 is of GPUs; float32 on the CPU")
    return replace(training, matmul_dtype="float32")


def _open_log(
    run: RunConfig, model: ModelConfig, training: TrainingConfig, resumed: Resumed | None
) -> Log:
    """Return the log of a run, which continues that of the checkpoint; close it."""
    return Log(
        run=Path(run.save_model),
        first=0 if resumed is None else resumed.step,
        config=training,
        alpha=model.generator_alpha,
        tensorboard=run.tensorboard,
    )


def _tell_result(folder: Path, outcome: Outcome, validation: ValidationConfig, tell: Tell) -> None:
    """Say how a run ended, and name its best checkpoint, or the last one without a best."""
    tell(f"finished at step {outcome.step} ({outcome.reason})")
    if best_step(folder) not in checkpoint_steps(folder):
        tell(f"last checkpoint: {folder}/step_{outcome.step}")
        return
    best = read_best(folder)
    assert best is not None, "best_step read it"
    value = measure_text(best.metric, best.value)
    conditions = validation.conditions(best.metric)
    how = f" ({conditions})" if conditions else ""
    tell(f"best checkpoint: {folder}/step_{best.step}, {value} on the development set{how}")
