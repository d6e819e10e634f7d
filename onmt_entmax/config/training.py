"""A training: its optimiser, the loss, and the limits at which it ends."""

from __future__ import annotations

from dataclasses import dataclass

from onmt_entmax.config.alphas import HAS_SPARSE_ATTENTION, LEARNS_ALPHA
from onmt_entmax.config.data import HAS_DEVELOPMENT_SET
from onmt_entmax.config.declaring import COUNT, LIMIT, SIZE, option
from onmt_entmax.config.topics import LIMITS, OPTIMISER, RUN, SPARSE, TRANSFORMER, VALIDATION
from onmt_entmax.rules import SHARE, number, one_of, positive


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
        needs=HAS_DEVELOPMENT_SET,
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
        needs=HAS_DEVELOPMENT_SET,
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
