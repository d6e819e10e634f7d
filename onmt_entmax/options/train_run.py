"""The run that the options of `train` describe: folder, device and word vectors."""

import os

from onmt_entmax.config import RunConfig
from onmt_entmax.files import no_such_file
from onmt_entmax.options.given import Options


def run_config(options: Options, seed: int) -> RunConfig:
    """Return the configuration of a run: its folder, its start and its device.

    Args:
        options: options of `train`.
        seed: seed of all random numbers.

    Raises:
        OptionError: if a file of word vectors is missing, or a side has two.
    """
    tensorboard = None
    if options["tensorboard"]:
        beside = os.path.join(options["save_model"], "tensorboard")
        tensorboard = options["tensorboard_log_dir"] or beside
    return options.make(
        RunConfig, seed=seed, gpu=_gpu(options), tensorboard=tensorboard, **_vectors(options)
    )


def _gpu(options: Options) -> int | None:
    """Return the number of the GPU of a single process; None: the CPU."""
    ranks = options["gpu_ranks"]
    if len(ranks) > 1 and options["world_size"] > len(ranks):
        return 0  # of several machines, each lists the ranks of its own processes
    return ranks[0] if ranks else None


def _vectors(options: Options) -> dict[str, str | None]:
    """Return the files of word vectors of both sides.

    Raises:
        OptionError: if a file is missing, or a side's file is named beside the file of both sides.
    """
    both = options["both_embeddings"]
    for name in ("both_embeddings", "src_embeddings", "tgt_embeddings"):
        if options[name] is None:
            continue
        if not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
        if name == "both_embeddings":
            continue
        if options["share_embeddings"]:
            raise options.error(name, "with share_embeddings, give both_embeddings alone")
        if both is not None:
            raise options.error(name, "give both_embeddings alone, or one for each side")
    return {side: both or options[side] for side in ("src_embeddings", "tgt_embeddings")}
