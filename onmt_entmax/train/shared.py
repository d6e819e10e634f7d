"""A training that several processes share: their connection, and the batches of each update."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from onmt_entmax.config import DataConfig, TrainingConfig
from onmt_entmax.errors import counted, first_line
from onmt_entmax.parallel.process_group import in_process_group
from onmt_entmax.parallel.processes import ProcessError, Processes


@contextmanager
def connected(processes: Processes, device: torch.device, folder: Path) -> Iterator[None]:
    """Connect to the other processes, if there are any, and disconnect at the end.

    Each update communicates, in many places, so any RuntimeError may be of another process. In
    `sharding.connected` few places do, and one process reports for all.

    Args:
        processes: of the run.
        device: of this process.
        folder: of the run, for advice.

    Raises:
        ProcessError: this or another process failed.
    """
    advice = f"continue from the last checkpoint with -train_from {folder}"
    with in_process_group(processes, device, advice):
        try:
            yield
        except RuntimeError as error:
            if processes.count == 1:
                raise
            # torchrun ends the other processes now; let them report their error first.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise ProcessError(
                f"this or another process of the run has failed ({first_line(error)}); {advice}"
            ) from None


def shared_updates(
    training: TrainingConfig,
    world_size: int,
    data: DataConfig,
    process_count: int,
    tell: Callable[[str], None],
) -> TrainingConfig:
    """Return the configuration with the batches of an update, all processes together.

    OpenNMT-py takes `accum_count` batches in each of `world_size` processes. An update has as many
    batches here, whatever the number of processes that share them.

    Args:
        training: its `accum_count` is already multiplied by the configured `world_size`.
        world_size: number of processes that is configured; 1 stands for any number.
        data: whose batches are shared.
        process_count: number of processes that there are.
        tell: receives a note if there are fewer processes than configured.

    Raises:
        ProcessError: the processes cannot share an update evenly, or a transform would give each
            process different batches.
    """
    if process_count > 1:
        _refuse_sampled_pieces(data)
    accum_count = training.accum_count
    if process_count > 1 and world_size == 1:
        accum_count = tuple(count * process_count for count in accum_count)
    for count in accum_count:
        if count % process_count:
            raise ProcessError(
                f"an update takes {counted(count, 'batch')} (world_size times accum_count), which "
                f"{process_count} processes cannot share evenly; start another number of them"
            )
    if world_size > process_count:
        tell(
            f"note: world_size {world_size} but {counted(process_count, 'process')}: gradients of "
            "all batches are accumulated, which gives the same updates"
        )
    return replace(training, accum_count=accum_count)


def _refuse_sampled_pieces(data: DataConfig) -> None:
    """Refuse a transform that would give each process different batches.

    Newer versions of sentencepiece seed their generator differently in each process.

    Raises:
        ProcessError: it samples subwords.
    """
    names = {name for corpus in data.corpora for name in corpus.transforms}
    n_best = {data.transform_options.get(f"{side}_subword_nbest", 1) for side in ("src", "tgt")}
    if "sentencepiece" in names and n_best - {0, 1}:  # with 0 and 1 nothing is sampled
        raise ProcessError(
            "src_subword_nbest or tgt_subword_nbest: the transform sentencepiece draws subwords "
            "that no seed makes the same in all processes: use one process, or onmt_tokenize or bpe"
        )
