"""The batches of an update, which the processes of a training share."""

from collections.abc import Callable
from dataclasses import replace

from onmt_entmax.config import DataConfig, TrainingConfig
from onmt_entmax.errors import counted
from onmt_entmax.parallel.processes import ProcessError


def with_shared_updates(
    training: TrainingConfig,
    data: DataConfig,
    *,
    world_size: int,
    process_count: int,
    tell: Callable[[str], None],
) -> TrainingConfig:
    """Return the configuration whose `accum_count` is the number of batches of a whole update.

    In OpenNMT-py, each of `world_size` processes takes `accum_count` batches for an update. Here an
    update has as many batches in all, however many processes share them.

    Args:
        training: its `accum_count` is the configured one times the configured `world_size`.
        data: its batches are shared.
        world_size: number of processes that is configured. The default, 1, leaves it open: then
            each of the processes that there are takes `accum_count` batches.
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
