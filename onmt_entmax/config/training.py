"""A training: optimiser, limits and schedules, validation, and the run that it is a part of."""

from __future__ import annotations

from dataclasses import dataclass

from onmt_entmax.config.alphas import HAS_SPARSE_ATTENTION, LEARNS_ALPHA
from onmt_entmax.config.conditions import HasKey, IsOn
from onmt_entmax.config.declaring import COUNT, FEW, LIMIT, PATH, SIZE, option
from onmt_entmax.config.topics import (
    LIMITS,
    OPTIMISER,
    RUN,
    SMOOTHING,
    SPARSE,
    TRANSFORMER,
    VALIDATION,
)
from onmt_entmax.errors import counted
from onmt_entmax.rules import FLAG, SHARE, number, one_of, positive, whole

_HAS_DEVELOPMENT_SET = HasKey("data", "valid")


@dataclass(frozen=True)
class OptimizerConfig:
    """Optimiser and learning-rate schedule.

    Attributes have the names that OpenNMT-py's functions read. All but this one are options:

    Attributes:
        rnn_size: model size, for the schedules noam and noamwd.
    """

    optim: str = option(
        "sgd",
        one_of("sgd", "adagrad", "adadelta", "adam", "adafactor"),
        help="Optimisation algorithm.",
        topic=OPTIMISER,
    )
    learning_rate: float = option(
        1.0, positive(1000), help="Learning rate, before any decay.", topic=OPTIMISER
    )
    alpha_learning_rate: float | None = option(
        None,
        positive(1000),
        help="Learning rate of learned alphas; by default learning_rate.",
        topic=TRANSFORMER,
        needs=LEARNS_ALPHA,
    )
    learning_rate_decay: float = option(
        0.5, positive(1), help="Factor on the learning rate at each decay.", topic=OPTIMISER
    )
    decay_method: str = option(
        "none",
        one_of("noam", "noamwd", "rsqrt", "none", "plateau", "cosine"),
        help="Decay of the learning rate. Ours: plateau; cosine, to 0 at train_steps or "
        "max_seconds, by whichever is nearer.",
        topic=OPTIMISER,
    )
    start_decay_steps: int = option(50000, COUNT, help="Updates before the first decay.")
    decay_steps: int = option(10000, LIMIT, help="Updates between two decays.")
    warmup_steps: int = option(
        4000, COUNT, help="Updates in which the learning rate rises.", topic=OPTIMISER
    )
    adam_beta1: float = option(0.9, SHARE, help="Beta1 of Adam.")
    adam_beta2: float = option(0.999, SHARE, help="Beta2 of Adam.")
    adagrad_accumulator_init: float = option(0.0, number(0, 10**6), help="Initial sums of Adagrad.")
    max_grad_norm: float = option(5.0, number(0, 10**9), help="Largest norm of a gradient; 0: any.")
    rnn_size: int = 500


@dataclass(frozen=True)
class TrainingConfig:
    """Loss, limits and schedule of a run.

    Most attributes are options that are declared here. These are not:

    Attributes:
        optimizer: optimiser and learning-rate schedule.
        dropout: dropout probability from each of `dropout_steps` on.
        attention_dropout: the same for a Transformer's attention.
    """

    optimizer: OptimizerConfig
    attention_warmup_steps: int = option(
        0,
        COUNT,
        help="Updates in which the attention's alpha rises from 1.",
        topic=SPARSE,
        needs=HAS_SPARSE_ATTENTION,
    )
    selection: str = option(
        "loss",
        one_of("loss", "token_accuracy", "exact_match", "macro_accuracy", "bleu"),
        help="Measure that chooses the best checkpoint.",
        topic=VALIDATION,
        needs=_HAS_DEVELOPMENT_SET,
    )
    valid_epochs: int | None = option(
        None, LIMIT, help="Validate every N epochs, instead of valid_steps.", topic=VALIDATION
    )
    train_epochs: int | None = option(
        None, LIMIT, help="Stop after N passes over the data.", topic=LIMITS
    )
    max_seconds: float | None = option(
        None,
        positive(10**10),
        help="End after so many seconds, including resumed runs and the last validation and "
        "checkpoint.",
        topic=LIMITS,
    )
    on_nonfinite: str = option(
        "stop",
        one_of("stop", "skip"),
        help="Reaction to a loss or gradient of inf or nan.",
        topic=LIMITS,
    )
    matmul_dtype: str = option(
        "float32",
        one_of("float32", "bfloat16", "tf32"),
        help="Type of products in training.",
        topic=LIMITS,
    )
    cuda_graphs: str = option(
        "on",
        one_of("on", "off", "check"),
        help="Record updates on a GPU as CUDA graphs.",
        topic=LIMITS,
    )
    train_steps: int | None = option(100000, LIMIT, help="Stop after N updates.", topic=RUN)
    valid_steps: int | None = option(10000, LIMIT, help="Validate every N updates.", topic=RUN)
    save_checkpoint_steps: int = option(5000, LIMIT, help="Save every N updates.", topic=RUN)
    early_stopping: int = option(
        0,
        COUNT,
        help="Validations without improvement before stopping; 0: never.",
        topic=RUN,
        needs=_HAS_DEVELOPMENT_SET,
    )
    report_every: int = option(50, LIMIT, help="Log every N updates.")
    accum_count: tuple[int, ...] = option((1,), SIZE, help="Batches of an update.", topic=OPTIMISER)
    accum_steps: tuple[int, ...] = option((0,), COUNT, help="Updates at which accum_count changes.")
    normalization: str = option(
        "sents", one_of("sents", "tokens"), help="Unit by which the loss of a batch is divided."
    )
    label_smoothing: float = option(
        0.0, SHARE, help="Share of a target that is spread over the vocabulary.", topic=OPTIMISER
    )
    dropout: tuple[float, ...] = (0.3,)
    attention_dropout: tuple[float, ...] = (0.1,)
    dropout_steps: tuple[int, ...] = option((0,), COUNT, help="Updates at which dropout changes.")
    average_decay: float = option(
        0.0,
        SHARE,
        help="Share of the newest weights in the average; 0: no average.",
        topic=OPTIMISER,
    )
    average_every: int = option(1, LIMIT, help="Updates between two changes of the average.")

    def reached(self, step: int, epoch: int, seconds: float, waited: int) -> str | None:
        """Return the name of a limit that ends a run in this state; None if none does.

        Args:
            step: number of updates so far.
            epoch: number of completed passes over the data.
            seconds: time of the run, earlier processes of a resumed run included.
            waited: number of validations since the last improvement.
        """
        so_far = {"train_steps": step, "train_epochs": epoch, "max_seconds": seconds}
        for name, done in so_far.items():
            limit = getattr(self, name)
            if limit is not None and done >= limit:
                return name
        return "early_stopping" if 0 < self.early_stopping <= waited else None


DECODED = ("exact_match", "macro_accuracy", "bleu")
"""Measures for which a validation decodes outputs; the others are computed with the loss"""


@dataclass(frozen=True)
class ValidationConfig:
    """Measures and sizes of a validation.

    Attributes are options. One of them belongs to `TrainingConfig`:

    Attributes:
        selection: measure that chooses the best checkpoint; some need decoding, see `DECODED`.
    """

    selection: str = TrainingConfig.selection
    valid_batch_size: int = option(32, SIZE, help="Sentences per batch of the development set.")
    valid_loss_size: int = option(
        0, COUNT, help="Sentences for the loss; 0: all.", topic=VALIDATION
    )
    valid_decode_size: int = option(
        1000, COUNT, help="Sentences to decode; 0: all.", topic=VALIDATION
    )
    valid_beam_size: int = option(1, FEW, help="Beam of the decoding.", topic=VALIDATION)
    max_length: int = option(
        100, whole(1, 10**6), help="Longest output of the decoding, in tokens.", topic=VALIDATION
    )
    calibrate: bool = option(
        False,
        FLAG,
        help="Multiply the output's scores by the number that fits corpus valid best.",
        topic=VALIDATION,
        needs=_HAS_DEVELOPMENT_SET,
    )
    valid_bleu_tokenize: str = option(
        "13a",
        one_of("13a", "intl", "zh", "char", "none"),
        help="Tokeniser of sacrebleu for `bleu`.",
        topic=VALIDATION,
    )

    def conditions(self, measure: str) -> str:
        """Return how a measure is taken, such as `at most 1,000 pairs, greedy`.

        The result is empty for a loss over all pairs.
        """
        decoded = measure in DECODED
        size = self.valid_decode_size if decoded else self.valid_loss_size
        conditions = [f"at most {counted(size, 'pair')}"] if size else []
        if decoded:
            beam = self.valid_beam_size
            conditions.append(f"beam {beam}" if beam > 1 else "greedy")
        return ", ".join(conditions)


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
