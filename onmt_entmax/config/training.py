"""A training: optimiser, limits and schedules, validation, and the run that it is a part of."""

from __future__ import annotations

from dataclasses import dataclass

from onmt_entmax.config.alphas import HAS_SPARSE_ATTENTION, LEARNS_ALPHA
from onmt_entmax.config.conditions import HasKey, IsOn
from onmt_entmax.config.declaring import COUNT, FEW, LIMIT, PATH, RUN, SIZE, option
from onmt_entmax.errors import counted
from onmt_entmax.rules import FLAG, SHARE, number, one_of, positive, whole

_HAS_DEVELOPMENT_SET = HasKey("data", "valid")


@dataclass(frozen=True)
class OptimizerConfig:
    """Optimiser and learning-rate schedule; named as OpenNMT-py's functions expect."""

    optim: str = option(
        "sgd", one_of("sgd", "adagrad", "adadelta", "adam", "adafactor"), "Algorithm.", "Optimiser"
    )
    learning_rate: float = option(
        1.0, positive(1000), "Learning rate, before any decay.", "Optimiser"
    )
    alpha_learning_rate: float | None = option(
        None,
        positive(1000),
        "Learning rate of learned alphas; by default learning_rate.",
        "Attention of a Transformer",
        needs=LEARNS_ALPHA,
    )
    learning_rate_decay: float = option(
        0.5, positive(1), "Factor on the learning rate at each decay.", "Optimiser"
    )
    decay_method: str = option(
        "none",
        one_of("noam", "noamwd", "rsqrt", "none", "plateau", "cosine"),
        "Decay of the learning rate. Ours: plateau; cosine, to 0 at train_steps or max_seconds, "
        "by whichever is nearer.",
        "Optimiser",
    )
    start_decay_steps: int = option(50000, COUNT, "Updates before the first decay.")
    decay_steps: int = option(10000, LIMIT, "Updates between two decays.")
    warmup_steps: int = option(
        4000, COUNT, "Updates in which the learning rate rises.", "Optimiser"
    )
    adam_beta1: float = option(0.9, SHARE, "Beta1 of Adam.")
    adam_beta2: float = option(0.999, SHARE, "Beta2 of Adam.")
    adagrad_accumulator_init: float = option(0.0, number(0, 10**6), "Initial sums of Adagrad.")
    max_grad_norm: float = option(5.0, number(0, 10**9), "Largest norm of a gradient; 0: any.")
    rnn_size: int = 500  # model size, for the schedules noam and noamwd


@dataclass(frozen=True)
class TrainingConfig:
    """Loss, limits and schedule of a run."""

    optimizer: OptimizerConfig
    attention_warmup_steps: int = option(
        0,
        COUNT,
        "Updates in which the attention's alpha rises from 1.",
        "Sparse attention and output",
        needs=HAS_SPARSE_ATTENTION,
    )
    selection: str = option(
        "loss",
        one_of("loss", "token_accuracy", "exact_match", "macro_accuracy", "bleu"),
        "Measure that chooses the best checkpoint.",
        "Validation",
        needs=_HAS_DEVELOPMENT_SET,
    )
    valid_epochs: int | None = option(
        None, LIMIT, "Validate every N epochs, instead of valid_steps.", "Validation"
    )
    train_epochs: int | None = option(
        None, LIMIT, "Stop after N passes over the data.", "Limits and speed"
    )
    max_seconds: float | None = option(
        None,
        positive(10**10),
        "End after so many seconds, including resumed runs and the last validation and checkpoint.",
        "Limits and speed",
    )
    on_nonfinite: str = option(
        "stop",
        one_of("stop", "skip"),
        "Reaction to a loss or gradient of inf or nan.",
        "Limits and speed",
    )
    matmul_dtype: str = option(
        "float32",
        one_of("float32", "bfloat16", "tf32"),
        "Type of products in training.",
        "Limits and speed",
    )
    cuda_graphs: str = option(
        "on",
        one_of("on", "off", "check"),
        "Record updates on a GPU as CUDA graphs.",
        "Limits and speed",
    )
    train_steps: int | None = option(100000, LIMIT, "Stop after N updates.", RUN)
    valid_steps: int | None = option(10000, LIMIT, "Validate every N updates.", RUN)
    save_checkpoint_steps: int = option(5000, LIMIT, "Save every N updates.", RUN)
    early_stopping: int = option(
        0,
        COUNT,
        "Validations without improvement before stopping; 0: never.",
        RUN,
        needs=_HAS_DEVELOPMENT_SET,
    )
    report_every: int = option(50, LIMIT, "Log every N updates.")
    accum_count: tuple[int, ...] = option((1,), SIZE, "Batches of an update.", "Optimiser")
    accum_steps: tuple[int, ...] = option((0,), COUNT, "Updates at which accum_count changes.")
    normalization: str = option(
        "sents", one_of("sents", "tokens"), "Unit by which the loss of a batch is divided."
    )
    label_smoothing: float = option(
        0.0, SHARE, "Share of a target that is spread over the vocabulary.", "Optimiser"
    )
    dropout: tuple[float, ...] = (0.3,)
    attention_dropout: tuple[float, ...] = (0.1,)
    dropout_steps: tuple[int, ...] = option((0,), COUNT, "Updates at which dropout changes.")
    average_decay: float = option(
        0.0, SHARE, "Share of the newest weights in the average; 0: no average.", "Optimiser"
    )
    average_every: int = option(1, LIMIT, "Updates between two changes of the average.")

    def reached(self, step: int, epoch: int, seconds: float, waited: int) -> str | None:
        """Return the name of a limit that ends a run in this state, or None."""
        so_far = {"train_steps": step, "train_epochs": epoch, "max_seconds": seconds}
        for name, done in so_far.items():
            limit = getattr(self, name)
            if limit is not None and done >= limit:
                return name
        return "early_stopping" if 0 < self.early_stopping <= waited else None


DECODED = ("exact_match", "macro_accuracy", "bleu")  # measures that need decoding


@dataclass(frozen=True)
class ValidationConfig:
    """Measures and sizes of a validation."""

    selection: str = TrainingConfig.selection  # decides whether anything is decoded
    valid_batch_size: int = option(32, SIZE, "Sentences per batch of the development set.")
    valid_loss_size: int = option(0, COUNT, "Sentences for the loss; 0: all.", "Validation")
    valid_decode_size: int = option(1000, COUNT, "Sentences to decode; 0: all.", "Validation")
    valid_beam_size: int = option(1, FEW, "Beam of the decoding.", "Validation")
    max_length: int = option(
        100, whole(1, 10**6), "Longest output of the decoding, in tokens.", "Validation"
    )
    calibrate: bool = option(
        False,
        FLAG,
        "Multiply the output's scores by the number that fits corpus valid best.",
        "Validation",
        needs=_HAS_DEVELOPMENT_SET,
    )
    valid_bleu_tokenize: str = option(
        "13a",
        one_of("13a", "intl", "zh", "char", "none"),
        "Tokeniser of sacrebleu for `bleu`.",
        "Validation",
    )

    def conditions(self, measure: str) -> str:
        """Return how a measure is taken, such as `at most 1,000 pairs, greedy`; may be empty."""
        decoded = measure in DECODED
        size = self.valid_decode_size if decoded else self.valid_loss_size
        conditions = [f"at most {counted(size, 'pair')}"] if size else []
        if decoded:
            beam = self.valid_beam_size
            conditions.append(f"beam {beam}" if beam > 1 else "greedy")
        return ", ".join(conditions)


@dataclass(frozen=True)
class RunConfig:
    """Folder, start and device of a run."""

    save_model: str = option("model", PATH, "Folder of the run.", RUN)
    train_from: str | None = option(None, PATH, "Run folder or checkpoint to continue from.", RUN)
    reset_optim: str = option(
        "none", one_of("none", "all"), "all: take only the weights of train_from."
    )
    overwrite: bool = option(
        False, FLAG, "Delete checkpoints that are in the way; only as a flag, not in a file.", RUN
    )
    keep_checkpoint: int = option(
        -1, whole(1, 10**12, off=-1), "Checkpoints to keep besides the best; -1: all.", RUN
    )
    seed: int = 0
    gpu: int | None = None
    world_size: int = option(1, FEW, "Multiplies accum_count, whatever the number of processes.")
    tensorboard: str | None = None  # folder of its files
    src_embeddings: str | None = option(
        None, PATH, "File of source word vectors, as text.", needs=IsOn("embeddings_type")
    )
    tgt_embeddings: str | None = option(
        None, PATH, "File of target word vectors, as text.", needs=IsOn("embeddings_type")
    )
    embeddings_type: str | None = option(
        None, one_of("GloVe", "word2vec"), "Format of these files."
    )
    label_smoothing_prior: str = option(
        "uniform",
        one_of("uniform", "unigram"),
        "Distribution for label_smoothing.",
        "Smoothing",
        needs=IsOn("label_smoothing"),
    )
