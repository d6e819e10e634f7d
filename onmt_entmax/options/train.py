"""The options of `train`: checked, and split into one configuration for each module."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onmt_entmax.config import (
    ALPHA,
    FEW,
    KINDS,
    LEARNED,
    RUN,
    SHARED,
    SIZE,
    TRANSFORMS,
    ConfigError,
    CorpusConfig,
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    Option,
    RunConfig,
    TrainingConfig,
    ValidationConfig,
    VocabularyConfig,
    declared,
)
from onmt_entmax.data.training import VALID
from onmt_entmax.errors import counted, nearest
from onmt_entmax.files import no_such_file, read_lines
from onmt_entmax.opennmt import train_opts
from onmt_entmax.options.declared import options_of, transform_options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.result import Options
from onmt_entmax.options.rivals import FUNCTIONS, SIDES
from onmt_entmax.options.stock import REFUSED
from onmt_entmax.options.values import OptionError, read_value
from onmt_entmax.rules import Rule, one_of, shown, whole
from onmt_entmax.strings.task import (
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    StringTask,
    TaskError,
    is_language,
)
from onmt_entmax.strings.task_record import recorded_task

# OpenNMT-py's names of alpha; `entmax` reads its alpha from an option of its own.
ALPHAS: Mapping[str, float | None] = {
    "softmax": 1.0,
    "entmax15": 1.5,
    "sparsemax": 2.0,
    "entmax": None,
}
# Of a Transformer's attention, alpha may also be learned.
ATTENTION_ALPHAS: Mapping[str, Any] = {**ALPHAS, LEARNED: LEARNED, SHARED: SHARED}

_SPARSE, _ATTENTION = "Sparse attention and output", "Attention of a Transformer"
TOPICS = (
    _SPARSE,
    "Validation",
    "Limits and speed",
    "Smoothing",
    RUN,
    "Corpora and batches",
    "Model",
    "Optimiser",
)
_TEXT = Rule(str)
# Options of the network that only one kind of it reads.
_OF: Mapping[str, Sequence[str]] = {
    "recurrent decoder": "rnn_type input_feed bridge context_gate global_attention".split(),
    "Transformer": "heads transformer_ff attention_dropout self_attn_type max_relative_positions "
    "aan_useffn pos_ffn_activation_fn".split(),
}

# Options that are converted before they become fields of a configuration.
OPTIONS = {
    "global_attention_function": Option(
        "softmax", one_of(*ALPHAS), "Attention weights.", _SPARSE, needs="decoder_type: rnn"
    ),
    "global_attention_alpha": Option(
        1.5, ALPHA, "Alpha of the attention.", _SPARSE, needs="global_attention_function: entmax"
    ),
    "generator_function": Option("softmax", one_of(*ALPHAS), "Output probabilities.", _SPARSE),
    "generator_alpha": Option(
        1.5, ALPHA, "Alpha of the output.", _SPARSE, needs="generator_function: entmax"
    ),
    **{
        name: option
        for kind in KINDS
        for name, option in {
            f"{kind}_attention_function": Option(
                "softmax",
                one_of(*ATTENTION_ALPHAS),
                f"Attention of the {kind}.",
                _ATTENTION,
                needs="decoder_type: transformer",
            ),
            f"{kind}_attention_alpha": Option(
                1.5, ALPHA, "Its alpha.", _ATTENTION, needs=f"{kind}_attention_function: entmax"
            ),
        }.items()
    },
    "config": Option(None, _TEXT, "YAML file with any of these options.", RUN),
    "data": Option(
        None,
        Rule(dict),
        "Corpora, in YAML: path_src, path_tgt, weight, transforms.",
        RUN,
        required=True,
    ),
    "task": Option(
        None,
        Rule(dict),
        "What the tokens are, in YAML: columns and separators of the tables; see docs.",
        "Corpora and batches",
    ),
    "target_order": Option(
        LEFT_TO_RIGHT,
        one_of(LEFT_TO_RIGHT, RIGHT_TO_LEFT),
        "right_to_left: the network writes the last token of a target first.",
        "Corpora and batches",
    ),
    "seed": Option(-1, whole(0, 2**32 - 1, off=-1), "Seed of all random numbers; -1 is 0.", RUN),
    "gpu_ranks": Option(
        [],
        Rule(int, 0, 10_000, note=" (for the CPU, leave it out or write gpu_ranks: [])"),
        "The GPU to train on; none, or no GPU here: the CPU.",
        RUN,
    ),
    "model_dtype": Option(
        "fp32",
        one_of("fp32", "fp16"),
        "fp16 is read as 32-bit weights, on a GPU with products in tf32.",
    ),
    "early_stopping_criteria": Option(
        [], one_of("accuracy", "ppl"), "OpenNMT-py's selection.", needs="early_stopping"
    ),
    "both_embeddings": Option(
        None, _TEXT, "Word vectors of both sides, as text.", needs="embeddings_type"
    ),
    "tensorboard": Option(False, Rule(bool), "Also write TensorBoard's files."),
    "tensorboard_log_dir": Option(
        None, _TEXT, "Their folder, instead of save_model/tensorboard.", needs="tensorboard"
    ),
    "transforms": Option(
        [],
        TRANSFORMS,
        "Transforms of all corpora, such as onmt_tokenize filtertoolong.",
        "Corpora and batches",
    ),
    "layers": Option(
        -1,
        replace(FEW, off=-1),
        "Layers of encoder and decoder; -1: enc_layers, dec_layers.",
        "Model",
    ),
    "rnn_size": Option(
        -1,
        replace(SIZE, off=-1),
        "Size of the states; -1: enc_rnn_size, dec_rnn_size.",
        "Model",
    ),
    "word_vec_size": Option(
        -1,
        replace(SIZE, off=-1),
        "Size of embeddings; -1: src_ and tgt_word_vec_size.",
        "Model",
    ),
    "enc_rnn_size": Option(500, SIZE, "Size of the encoder's states."),
    "dec_rnn_size": Option(500, SIZE, "Size of the decoder's states."),
}


@dataclass(frozen=True)
class TrainingSetup:
    """The options of `train`, by the module that reads them."""

    run: RunConfig
    data: DataConfig
    vocabulary: VocabularyConfig
    model: ModelConfig
    training: TrainingConfig
    validation: ValidationConfig
    record: dict[str, Any]  # every option, as saved in model folders
    notes: tuple[str, ...] = ()  # on options that have no effect or another one
    warnings: tuple[str, ...] = ()


# Lists with a value for each part of a training.
_SCHEDULES = ("dropout", "attention_dropout")


def training_options() -> dict[str, Option]:
    """Return the options of `train`."""
    ours = declared(
        TrainingConfig,
        ValidationConfig,
        DataConfig,
        RunConfig,
        VocabularyConfig,
        ModelConfig,
        OptimizerConfig,
    )
    return options_of(train_opts, OPTIONS | ours | OPTIONS)


def training_setup(arguments: Sequence[str]) -> TrainingSetup:
    """Read the command line of `train` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    options = _with_equals(read_options(training_options(), arguments))
    if not set(options["data"]) - {VALID}:
        raise options.error("data", "needs a corpus besides valid")
    corpora = [_corpus(options, name, entry) for name, entry in options["data"].items()]
    options = _without_unread(options, corpora)
    record = {name: value for name, value in sorted(options.values.items()) if name != "config"}
    options = _resolved(options)
    for name, reason in _misfits(options):
        raise options.error(name, reason)
    values = options.values
    model = _model_config(options)
    seed = max(values["seed"], 0)  # -1, OpenNMT-py's "not set", is 0, so that runs are repeatable
    return TrainingSetup(
        run=_run_config(options, seed),
        data=DataConfig(
            corpora=tuple(corpus for corpus in corpora if corpus.name != VALID),
            valid=next((corpus for corpus in corpora if corpus.name == VALID), None),
            **options.pick(DataConfig),
            task=_task(options),
            seed=seed,
            transform_options={name: values[name] for name in transform_options()},
        ),
        vocabulary=VocabularyConfig(**options.pick(VocabularyConfig)),
        model=model,
        training=_training_config(options, model.rnn_size),
        validation=ValidationConfig(values["selection"], **options.pick(ValidationConfig)),
        record=record,
        notes=tuple(options.notes.lines()),
        warnings=tuple(options.notes.warnings),
    )


def _resolved(options: Options) -> Options:
    """Return the options with values that follow from others: sizes, alphas and limits.

    Raises:
        OptionError: encoder and decoder have different sizes.
    """
    values = dict(options.values)
    for both, sides in SIDES.items():  # as in OpenNMT-py, the option for both sides wins
        if values[both] > 0:
            values |= dict.fromkeys(sides, values[both])
    if values["enc_rnn_size"] != values["dec_rnn_size"]:
        raise options.error("enc_rnn_size", f"must equal dec_rnn_size, {values['dec_rnn_size']}")
    values["rnn_size"] = values["dec_rnn_size"]
    for name in FUNCTIONS:
        alpha = ATTENTION_ALPHAS[values[f"{name}_function"]]
        if alpha is not None:
            values[f"{name}_alpha"] = alpha
    has_other_limit = values["train_epochs"] or values["max_seconds"]
    if has_other_limit and not options.given("train_steps"):
        values["train_steps"] = None
    return replace(options, values=values)


def _model_config(options: Options) -> ModelConfig:
    """Return the network; its dropout is the first of the schedule.

    Raises:
        OptionError: names the option that does not fit others.
    """
    dropout = {name: options[name][0] for name in _SCHEDULES}
    try:
        return ModelConfig(**options.pick(ModelConfig) | dropout)
    except ConfigError as error:
        raise options.error(error.key, error.reason) from None


def _run_config(options: Options, seed: int) -> RunConfig:
    """Return the folder, start and device of a run."""
    tensorboard = None
    if options["tensorboard"]:
        beside = os.path.join(options["save_model"], "tensorboard")
        tensorboard = options["tensorboard_log_dir"] or beside
    return RunConfig(
        **options.pick(RunConfig) | _vectors(options),
        seed=seed,
        gpu=_gpu(options),
        tensorboard=tensorboard,
    )


def _training_config(options: Options, rnn_size: int) -> TrainingConfig:
    """Return loss, limits and schedules of a training of a network of a size."""
    changed = {name: tuple(options[name]) for name in _SCHEDULES}
    # OpenNMT-py accumulates so many batches in each of `world_size` processes.
    changed["accum_count"] = tuple(n * options["world_size"] for n in options["accum_count"])
    return TrainingConfig(
        OptimizerConfig(**options.pick(OptimizerConfig), rnn_size=rnn_size),
        **options.pick(TrainingConfig) | changed,
    )


def _task(options: Options) -> StringTask:
    """Return the task of the data; without `task`, the first source says whether it inflects."""
    first = next(iter(options["data"].values()))
    lines = read_lines(Path(first["path_src"])) if isinstance(first, dict) else iter(())
    languages = is_language(next((line.split()[0] for line in lines if line.strip()), ""))
    try:
        return recorded_task(options.values, languages)
    except TaskError as error:
        key = next(name for name in ("task", "target_order") if options.given(name))
        raise options.error(key, str(error).removeprefix(f"{key}: ")) from None


def _gpu(options: Options) -> int | None:
    """Return the number of the GPU of a single process; None: the CPU."""
    ranks = options["gpu_ranks"]
    if len(ranks) > 1 and options["world_size"] > len(ranks):
        return 0  # the ranks of one of several machines
    return ranks[0] if ranks else None


def _with_equals(options: Options) -> Options:
    """Return the options with those of OpenNMT-py replaced that have an equal here.

    Half precision becomes 32-bit weights, with tf32 products on a GPU; criteria of early stopping
    become the selection.
    """
    values, notes = dict(options.values), options.notes
    if values["model_dtype"] == "fp16":
        values["model_dtype"] = "fp32"
        products = ""
        if values["gpu_ranks"] and not options.given("matmul_dtype"):
            values["matmul_dtype"] = "tf32"
            products = " with matmul_dtype tf32"
        notes.replaced.append(f"model_dtype fp16 as 32-bit floats{products}")
    defaults = training_options()
    kind = "recurrent decoder" if values["decoder_type"] == "transformer" else "Transformer"
    for name in _OF[kind]:
        if options.given(name) and values[name] != defaults[name].default:
            notes.ignored.append(f"{name} (of a {kind})")
    criteria = values["early_stopping_criteria"]
    values["early_stopping_criteria"] = []
    if criteria and not options.given("selection"):
        values["selection"] = "token_accuracy" if criteria == ["accuracy"] else "loss"
        words = " ".join(map(str, criteria))
        notes.replaced.append(f"early_stopping_criteria {words} as selection {values['selection']}")
    # In a file of OpenNMT-py it is about vocabularies, and deletes no checkpoints.
    if values["overwrite"] and options.origin["overwrite"] != "command line":
        notes.ignored.append("overwrite (only as a flag)")
        values["overwrite"] = False
    return replace(options, values=values)


def _without_unread(options: Options, corpora: Sequence[CorpusConfig]) -> Options:
    """Return the options with the defaults of those that only transforms of no corpus read."""
    names = {name for corpus in corpora for name in corpus.transforms}
    used = {*transform_options(names), "src_subword_type" if "bart" in names else ""}
    values = dict(options.values)
    for name, each in transform_options().items():
        if name not in used and values[name] != each.default:
            options.notes.ignored.append(f"{name} (no transform reads it)")
            values[name] = each.default
    return replace(options, values=values)


def _misfits(options: Options) -> Iterator[tuple[str, str]]:
    """Yield the name of each option that cannot be trained with, and why."""
    get: Callable[[str], Any] = options.values.get
    schedules = {"accum_count": "accum_steps"}
    schedules |= dict.fromkeys(("dropout", "attention_dropout"), "dropout_steps")
    for name, starts in schedules.items():
        if len(options[name]) != len(options[starts]):
            yield name, f"needs as many values as {starts}"
        if options[starts] != sorted(options[starts]):
            yield starts, "must rise"
    recurrent = get("encoder_type") in ("rnn", "brnn") or (
        get("decoder_type") == "rnn" and get("input_feed")
    )
    ranks, both = options["gpu_ranks"], [get("src_vocab"), get("tgt_vocab")]
    one_file = None not in both and len({*map(os.path.realpath, both)}) == 1
    if not get("save_model").strip():
        yield "save_model", "must name a folder"
    if os.path.isfile(get("save_model")):
        yield "save_model", "is a file; name a folder"
    if one_file and not get("share_vocab") and not os.path.isfile(both[0]):
        yield "tgt_vocab", "is src_vocab, and not there yet: name two files"
    if get("decay_method") == "cosine" and not (get("train_steps") or get("max_seconds")):
        yield (
            "decay_method",
            "cosine ends at train_steps or max_seconds: set one of them, or name another method",
        )
    if get("copy_frequency"):
        # The source vocabulary tells decoding what is copied.
        if get("share_vocab"):
            yield (
                "copy_frequency",
                "needs vocabularies of its own for each side: leave out share_vocab",
            )
        if get("src_words_min_frequency"):
            yield (
                "copy_frequency",
                "decides which symbols are rare: leave src_words_min_frequency out",
            )
    if options.given("valid_epochs") and options.given("valid_steps"):
        yield "valid_epochs", "give valid_steps or valid_epochs, not both"
    if get("matmul_dtype") == "tf32" and not ranks:
        yield "matmul_dtype", "tf32 needs a GPU: give gpu_ranks"
    if get("matmul_dtype") == "bfloat16" and not (recurrent and get("rnn_type") == "LSTM"):
        yield "matmul_dtype", "bfloat16 is of LSTM encoders and input-feeding LSTM decoders"
    if get("decay_method") in ("noam", "noamwd", "cosine") and not get("warmup_steps"):
        yield "warmup_steps", f"must be at least 1 with decay_method: {get('decay_method')}"
    if get("decay_method") == "plateau" and VALID not in options["data"]:
        yield "decay_method", "plateau needs a corpus named valid under data"
    if len(ranks) > max(get("world_size"), int(os.environ.get("WORLD_SIZE", "1"))):
        yield (
            "gpu_ranks",
            f"names {counted(len(ranks), 'GPU')}: start as many processes with torchrun",
        )


def _corpus(options: Options, name: object, entry: object) -> CorpusConfig:
    """Return an entry of `data`."""

    def error(part: str, message: str) -> OptionError:
        return options.error("data", f"corpus {shown(name)}: {part}{message}")

    if not isinstance(name, str):
        raise options.error("data", f"{shown(name)}: must be text; put it between quotes")
    if not isinstance(entry, dict):
        raise error("", "must be a mapping with path_src and path_tgt")
    keys, values = declared(CorpusConfig), {}
    for key, value in entry.items():
        if key == "path_align":  # OpenNMT-py reads it with lambda_align alone, which is refused
            options.notes.ignored.append(f"path_align of {name}")
            continue
        if key == "src_feats":
            raise error("src_feats: ", REFUSED["src_feats"])
        if key not in keys and key in options.values:
            raise error(
                f"{key}: ", "is an option of the whole file; write it at the start of a line"
            )
        if key not in keys:
            raise error(f"{key}: ", f"no such key{nearest(str(key), keys)}")
        values[key] = read_value(keys[key], value, str(error(key, "")))
    for key in ("path_src", "path_tgt"):
        if not values.get(key):
            raise error(f"{key}: ", "is required")
        if not os.path.isfile(values[key]):
            raise error(f"{key}: ", no_such_file(values[key]))
    transforms = tuple(values.get("transforms", options["transforms"]))
    if "prefix" in transforms and not {"src_prefix", "tgt_prefix"} <= values.keys():
        raise error("", "the transform prefix needs src_prefix and tgt_prefix")
    for key in {"src_prefix", "tgt_prefix"} & values.keys():
        if "prefix" not in transforms:
            raise error(f"{key}: ", "is only read with the transform prefix")
        values[key] = values[key] or ""  # of one side alone
    return CorpusConfig(name, **values | {"transforms": transforms})


def _vectors(options: Options) -> dict[str, str | None]:
    """Return the files of word vectors of both sides."""
    both = options["both_embeddings"]
    for name in ("both_embeddings", "src_embeddings", "tgt_embeddings"):
        if options[name] is None:
            continue
        if not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
        if name != "both_embeddings" and (both is not None or options["share_embeddings"]):
            raise options.error(name, "give both_embeddings alone, or one for each side")
    return {side: both or options[side] for side in ("src_embeddings", "tgt_embeddings")}
