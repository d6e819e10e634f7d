"""A training run: its folder, its start, its device, and the files that it reads at the start."""

from __future__ import annotations

from dataclasses import dataclass

from onmt_entmax.config.conditions import IsOn
from onmt_entmax.config.declaring import FEW, PATH, option
from onmt_entmax.config.topics import RUN, SMOOTHING
from onmt_entmax.rules import FLAG, one_of, whole


@dataclass(frozen=True)
class RunConfig:
    """Folder, start and device of a run.

    Most attributes are options. These follow from options:

    Attributes:
        seed: seed of all random numbers, at least 0.
        gpu: number of the GPU; None: the CPU.
        tensorboard: folder of TensorBoard's files; None: they are not written.
    """

    save_model: str = option("model", PATH, help="Folder of the run.", topic=RUN)
    train_from: str | None = option(
        None, PATH, help="Run folder or checkpoint to continue from.", topic=RUN
    )
    reset_optim: str = option(
        "none", one_of("none", "all"), help="all: take only the weights of train_from."
    )
    overwrite: bool = option(
        False,
        FLAG,
        help="Delete checkpoints that are in the way; only as a flag, not in a file.",
        topic=RUN,
    )
    keep_checkpoint: int = option(
        -1,
        whole(1, 10**12, off=-1),
        help="Checkpoints to keep besides the best; -1: all.",
        topic=RUN,
    )
    seed: int = 0
    gpu: int | None = None
    world_size: int = option(
        1, FEW, help="Multiplies accum_count, whatever the number of processes."
    )
    tensorboard: str | None = None
    src_embeddings: str | None = option(
        None, PATH, help="File of source word vectors, as text.", needs=IsOn("embeddings_type")
    )
    tgt_embeddings: str | None = option(
        None, PATH, help="File of target word vectors, as text.", needs=IsOn("embeddings_type")
    )
    embeddings_type: str | None = option(
        None, one_of("GloVe", "word2vec"), help="Format of the files of word vectors."
    )
    label_smoothing_prior: str = option(
        "uniform",
        one_of("uniform", "unigram"),
        help="Distribution for label_smoothing.",
        topic=SMOOTHING,
        needs=IsOn("label_smoothing"),
    )
