"""The configurations of a training; every option that becomes one of their fields is declared here.

`option` gives a field its default, its range and its help. `options/train.py` declares the options
that are converted first, `options/translate_table.py` those of `translate`. Fields have the names,
types and defaults of OpenNMT-py where it has the option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS
from onmt_entmax.rules import FLAG, SHARE, Rule, number, one_of, positive, shown, whole
from onmt_entmax.strings.task import TRANSLATION, StringTask


@dataclass(frozen=True)
class Option:
    """An option of `train` or `translate`.

    Attributes:
        default: the value if it is not given; of an option that is a list, a list or tuple.
        rule: what a value may be; of a list, each.
        help: one line.
        topic: its heading in the short help; others are listed by `--help-all` alone.
        needs: options or values, between "or", without which it does nothing, such as `search:
            exact or verify`.
        required: whether it must be given.
    """

    default: Any
    rule: Rule
    help: str = ""
    topic: str = ""
    needs: str = ""
    required: bool = False

    @property
    def many(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.default, (list, tuple))


def option(*declaration: Any, **more: Any) -> Any:
    """Return a field of a dataclass that is also an option; the arguments are those of `Option`."""
    each = Option(*declaration, **more)
    given: Any = {"kw_only": True} if each.required else {"default": each.default}
    return field(metadata={"option": each}, **given)


def declared(*kinds: Any) -> dict[str, Option]:
    """Return the options among the fields of dataclasses."""
    return {f.name: f.metadata["option"] for kind in kinds for f in fields(kind) if f.metadata}


TargetSymbols = Literal["any", "language"]
TARGET_SYMBOLS: TargetSymbols = "any"
"""Which target symbols decoding allows by default: all, since certificates are then about all that
the model can write"""
KINDS = ("encoder", "decoder", "context")
"""The attentions of a Transformer: self-attention of encoder and decoder, decoder to source"""
LEARNED, SHARED = "learned", "learned_shared"
"""Values of alpha besides numbers: one for each head, or one for all heads of all layers"""

# Bounds that no use comes near are there because time or memory would run out beyond them.
COUNT, LIMIT = whole(0, 10**12), whole(1, 10**12)  # of sentences, updates and the like
FEW, SIZE = whole(1, 10_000), whole(1, 1_000_000)
ALPHA = number(1, 10**6, " (1 is softmax, 2 is sparsemax)")
_LEARNED_ALPHA = replace(ALPHA, names=(LEARNED, SHARED))
_PATH = Rule(str)
RUN = "Run (OpenNMT-py's options from here on)"
# Those of source features are left out.
TRANSFORMS = one_of(*(n for n in AVAILABLE_TRANSFORMS if n not in ("inferfeats", "filterfeats")))
_NEEDS_LEARNED = " or ".join(
    f"{kind}_attention_function: {alpha}" for alpha in (LEARNED, SHARED) for kind in KINDS
)
_NEEDS_SPARSE = " or ".join(f"{kind}_attention_function" for kind in ("global", *KINDS))


class ConfigError(UserError):
    """An invalid configuration.

    Attributes:
        key: the field, or the option that it comes from.
        reason: the message without the key.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key, self.reason = key, reason


class Checked:
    """Base of a dataclass whose options follow their rules and fit each other.

    Raises:
        ConfigError: names the first value that breaks its rule or does not fit another.
    """

    def __post_init__(self) -> None:
        for name, each in declared(type(self)).items():
            value = getattr(self, name)
            values = value if each.many else [value]
            if not (isinstance(values, (list, tuple)) and all(map(each.rule.fits, values))):
                rule = f"must be a list; each value {each.rule}" if each.many else each.rule
                raise ConfigError(name, f"{rule}, not {shown(value)}")
        for name, reason in self.misfits():
            raise ConfigError(name, reason)

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        yield from ()


@dataclass(frozen=True)
class ModelConfig(Checked):
    """The network."""

    encoder_type: str = option(
        "rnn", one_of("rnn", "brnn", "mean", "transformer"), "Type of the encoder.", "Model"
    )
    decoder_type: str = option("rnn", one_of("rnn", "transformer"), "Type of the decoder.", "Model")
    rnn_type: str = option("LSTM", one_of("LSTM", "GRU"), "Cells of recurrent layers.")
    enc_layers: int = option(2, FEW, "Layers of the encoder.")
    dec_layers: int = option(2, FEW, "Layers of the decoder.")
    # Of encoder and decoder states; in a Transformer, the model size.
    rnn_size: int = option(500, SIZE)
    src_word_vec_size: int = option(500, SIZE, "Size of source embeddings.")
    tgt_word_vec_size: int = option(500, SIZE, "Size of target embeddings.")
    input_feed: bool = option(
        True, FLAG, "Feed each attentional vector to a recurrent decoder's next step."
    )
    bridge: bool = option(False, FLAG, "Add a layer between the states of encoder and decoder.")
    context_gate: str | None = option(
        None, one_of("source", "target", "both", off=None), "Gate of a recurrent decoder's context."
    )
    global_attention: str = option(
        "general",
        one_of("dot", "general", "mlp", "none"),
        "Scores of a recurrent decoder.",
    )
    global_attention_alpha: float = option(1.0, ALPHA)
    # A number, `learned` (one alpha for each head) or `learned_shared` (one for all heads).
    encoder_attention_alpha: float | str = option(1.0, _LEARNED_ALPHA)
    decoder_attention_alpha: float | str = option(1.0, _LEARNED_ALPHA)
    context_attention_alpha: float | str = option(1.0, _LEARNED_ALPHA)
    alpha_init_mean: float = option(
        0.0,
        number(-100, 100),
        "Mean of `a` at the start; a learned alpha is 1 + sigmoid(a).",
        "Attention of a Transformer",
        _NEEDS_LEARNED,
    )
    alpha_init_std: float = option(
        1.0,
        number(0, 100),
        "Its standard deviation.",
        "Attention of a Transformer",
        _NEEDS_LEARNED,
    )
    generator_alpha: float = option(1.0, ALPHA)
    heads: int = option(8, FEW, "Attention heads of a Transformer.", "Model")
    transformer_ff: int = option(2048, SIZE, "Feed-forward size of a Transformer.", "Model")
    dropout: float = option(0.3, SHARE, "Dropout probability.", "Model")
    attention_dropout: float = option(
        0.1, SHARE, "Dropout probability of a Transformer's attention."
    )
    position_encoding: bool = option(False, FLAG, "Add sinusoidal positions to embeddings.")
    share_embeddings: bool = option(
        False, FLAG, "Share one table of embeddings.", needs="share_vocab"
    )
    share_decoder_embeddings: bool = option(
        False, FLAG, "Share one table between target embeddings and output layer."
    )
    self_attn_type: str = option(
        "scaled-dot", one_of("scaled-dot", "average"), "Self-attention of the decoder."
    )
    max_relative_positions: int = option(
        0, whole(0, 10_000), "Largest relative position in a Transformer; 0: absolute ones."
    )
    aan_useffn: bool = option(False, FLAG, "Add a feed-forward layer to average attention.")
    pos_ffn_activation_fn: str = option(
        "relu", one_of("relu", "gelu"), "Activation in a Transformer's feed-forward layers."
    )
    param_init: float = option(
        0.1, number(0, 100), "Initialise uniformly in (-p, p); 0: PyTorch's defaults."
    )
    param_init_glorot: bool = option(False, FLAG, "Initialise matrices by Glorot's method.")
    freeze_encoder: bool = option(False, FLAG, "Freeze the encoder, but for its embeddings.")
    freeze_decoder: bool = option(False, FLAG, "Freeze the decoder, but for its embeddings.")
    freeze_word_vecs_enc: bool = option(False, FLAG, "Freeze source embeddings.")
    freeze_word_vecs_dec: bool = option(False, FLAG, "Freeze target embeddings.")

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        size, transformer = self.rnn_size, self.decoder_type == "transformer"
        source, target = self.src_word_vec_size, self.tgt_word_vec_size
        if (self.encoder_type == "transformer") is not transformer:
            yield "encoder_type", "a Transformer needs it on both sides"
        if self.encoder_type == "brnn" and size % 2:
            yield "rnn_size", f"must be even for the two directions of brnn, not {size}"
        fits = self.enc_layers == self.dec_layers
        fits |= self.input_feed and self.enc_layers > self.dec_layers
        if not transformer and not fits:
            yield (
                "dec_layers",
                f"{self.dec_layers} of a recurrent decoder do not fit enc_layers: "
                f"{self.enc_layers}, whose last states they begin with; make them equal",
            )
        if self.encoder_type == "mean" and source != size:
            yield "src_word_vec_size", f"must equal rnn_size {size} with encoder_type: mean"
        if self.position_encoding and (source % 2 or target % 2):
            yield "position_encoding", f"needs even sizes of embeddings, not {source} and {target}"
        if transformer and size % self.heads:
            yield "heads", f"must divide rnn_size {size}"
        for side, words in (("src", source), ("tgt", target)):
            if transformer and words != size:
                yield f"{side}_word_vec_size", f"must equal rnn_size {size} in a Transformer"
        for kind, alpha in self.attention_alphas.items():
            if alpha != 1 and not transformer:
                yield (
                    f"{kind}_attention_alpha",
                    "is of a Transformer; a recurrent decoder has global_attention_function",
                )
        if self.self_attn_type == "average" and self.decoder_attention_alpha != 1:
            yield (
                "decoder_attention_alpha",
                "needs self_attn_type: scaled-dot; average attention has no alpha",
            )
        share, frozen = self.share_embeddings, self.freeze_word_vecs_dec
        if share and source != target:
            yield "share_embeddings", "needs equal word_vec_size on both sides"
        if share and self.freeze_word_vecs_enc != frozen:
            yield "share_embeddings", "is one table: freeze it for both sides or neither"
        if self.share_decoder_embeddings and frozen:
            yield "freeze_word_vecs_dec", "would freeze the output layer that shares it"
        if self.share_decoder_embeddings and target != size:
            yield "share_decoder_embeddings", "needs tgt_word_vec_size equal to rnn_size"

    @classmethod
    def read(cls, values: Mapping[Any, Any]) -> ModelConfig:
        """Return the network that a file describes; keys that it lacks have their defaults.

        Raises:
            ConfigError: a key is unknown, or see the class.
        """
        known = {field.name for field in fields(cls)}
        for key in values:
            if key not in known:
                name = key[:80] if isinstance(key, str) else shown(key)
                raise ConfigError(name, f"no such key{nearest(name, known)}")
        return cls(**values)

    @property
    def attention_alphas(self) -> dict[str, float | str]:
        """Alphas of a Transformer's attention by kind."""
        return {kind: getattr(self, f"{kind}_attention_alpha") for kind in KINDS}

    @property
    def source_attention_alpha(self) -> float | str:
        """Alpha of the decoder's attention to the source."""
        if self.decoder_type == "transformer":
            return self.context_attention_alpha
        return self.global_attention_alpha

    @property
    def attention_text(self) -> str:
        """The alphas of all attention, for people."""
        if self.decoder_type != "transformer":
            return f"attention alpha {self.global_attention_alpha:g}"
        alphas = self.attention_alphas.items()
        texts = [f"{kind} {a if isinstance(a, str) else f'{a:g}'}" for kind, a in alphas]
        return f"attention alphas {', '.join(texts)}"


@dataclass(frozen=True)
class CorpusConfig:
    """One pair of files; fields are the keys of an entry of `data`."""

    name: str
    path_src: str = option("", _PATH, "File of sources, a sentence a line.")
    path_tgt: str = option("", _PATH, "File of targets.")
    weight: int = option(1, LIMIT, "Examples drawn from this corpus in each round.")
    transforms: tuple[str, ...] = option((), TRANSFORMS, "Transforms of this corpus.")
    src_prefix: str | None = option(None, _PATH, "Source tokens of the transform prefix.")
    tgt_prefix: str | None = option(None, _PATH, "Target tokens of the transform prefix.")


@dataclass(frozen=True)
class DataConfig:
    """All corpora and the settings of batches."""

    corpora: tuple[CorpusConfig, ...]
    valid: CorpusConfig | None
    batch_size: int = option(64, SIZE, "Sentences or tokens of a batch.", "Corpora and batches")
    batch_type: str = option(
        "sents", one_of("sents", "tokens"), "Unit of batch_size.", "Corpora and batches"
    )
    bucket_size: int = option(
        262144, LIMIT, "Lines that are shuffled and sorted by length together."
    )
    num_workers: int = option(
        0, whole(0, 256), "Processes that prefetch batches; 0: none.", "Limits and speed"
    )
    queue_size: int = option(40, FEW, "Batches that each of num_workers may prefetch.")
    skip_empty_level: str = option(
        "warning",
        one_of("silent", "warning", "error"),
        "What to do about a line that is empty on one side.",
    )
    src_seq_length_trunc: int | None = option(None, LIMIT, "Cut sources to this length.")
    tgt_seq_length_trunc: int | None = option(None, LIMIT, "Cut targets to this length.")
    copy_frequency: int = option(
        0,
        COUNT,
        "Copy source symbols of fewer training sources by placeholders, unknown ones too; 0: none.",
        "Corpora and batches",
    )
    task: StringTask = TRANSLATION
    """Of the tokens in the files: `task`, `target_order` and `copy_frequency` describe it."""
    seed: int = 0
    transform_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VocabularyConfig:
    """Files and sizes of the vocabularies."""

    src_vocab: str | None = option(
        None,
        _PATH,
        "Vocabulary file; written from the data if it does not exist.",
        "Corpora and batches",
    )
    tgt_vocab: str | None = option(None, _PATH, "The same for targets.", "Corpora and batches")
    share_vocab: bool = option(False, FLAG, "Share one vocabulary.", "Corpora and batches")
    src_vocab_size: int = option(50000, LIMIT, "Largest source vocabulary.")
    tgt_vocab_size: int = option(50000, LIMIT, "Largest target vocabulary.")
    src_words_min_frequency: int = option(0, COUNT, "Leave out rarer source tokens.")
    tgt_words_min_frequency: int = option(0, COUNT, "Leave out rarer target tokens.")
    vocab_size_multiple: int = option(1, SIZE, "Pad vocabularies to a multiple.")


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
        _NEEDS_LEARNED,
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
        _NEEDS_SPARSE,
    )
    selection: str = option(
        "loss",
        one_of("loss", "token_accuracy", "exact_match", "macro_accuracy", "bleu"),
        "Measure that chooses the best checkpoint.",
        "Validation",
        "data: valid",
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
        "End after so many seconds, resumed runs, the last validation and checkpoint included.",
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
        "on", one_of("on", "off", "check"), "Updates on a GPU as CUDA graphs.", "Limits and speed"
    )
    train_steps: int | None = option(100000, LIMIT, "Stop after N updates.", RUN)
    valid_steps: int | None = option(10000, LIMIT, "Validate every N updates.", RUN)
    save_checkpoint_steps: int = option(5000, LIMIT, "Save every N updates.", RUN)
    early_stopping: int = option(
        0, COUNT, "Validations without improvement before stopping; 0: never.", RUN, "data: valid"
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
        known = [f"at most {counted(size, 'pair')}"] if size else []
        if decoded:
            known.append(f"beam {self.valid_beam_size}" if self.valid_beam_size > 1 else "greedy")
        return ", ".join(known)


@dataclass(frozen=True)
class RunConfig:
    """Folder, start and device of a run."""

    save_model: str = option("model", _PATH, "Folder of the run.", RUN)
    train_from: str | None = option(None, _PATH, "Run folder or checkpoint to continue from.", RUN)
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
        None, _PATH, "File of source word vectors, as text.", needs="embeddings_type"
    )
    tgt_embeddings: str | None = option(
        None, _PATH, "File of target word vectors, as text.", needs="embeddings_type"
    )
    embeddings_type: str | None = option(
        None, one_of("GloVe", "word2vec"), "Format of these files."
    )
    label_smoothing_prior: str = option(
        "uniform",
        one_of("uniform", "unigram"),
        "Distribution for label_smoothing.",
        "Smoothing",
        "label_smoothing",
    )
