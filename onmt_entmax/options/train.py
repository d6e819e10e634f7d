"""The options of `train`: checked, and split into one configuration for each module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from onmt_entmax.data.corpus import VALID, CorpusConfig, DataConfig
from onmt_entmax.data.vocabulary import VocabularyConfig
from onmt_entmax.errors import counted, nearest
from onmt_entmax.model import ModelConfig, NetworkError
from onmt_entmax.network import RULES as NETWORK
from onmt_entmax.nn.transformer import KINDS, LEARNED, SHARED
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, train_opts
from onmt_entmax.options.reader import (
    Options,
    read_options,
    register,
)
from onmt_entmax.options.support import (
    FEATURE_TRANSFORMS,
    REFUSED_IN_TRAINING,
    SUPPORTED_VALUES,
    check_values,
    refuse_unsupported,
)
from onmt_entmax.options.transforms import transform_option_names
from onmt_entmax.train import OptimizerConfig, RunConfig, TrainingConfig
from onmt_entmax.train.evaluation import ValidationConfig

# OpenNMT-py's names of alpha; `entmax` reads its alpha from an option of its own.
ALPHAS: Mapping[str, float | None] = {
    "softmax": 1.0,
    "entmax15": 1.5,
    "sparsemax": 2.0,
    "entmax": None,
}

# Of a Transformer's attention, alpha may also be learned.
ATTENTION_ALPHAS: Mapping[str, float | str | None] = {**ALPHAS, LEARNED: LEARNED, SHARED: SHARED}

# Alpha of the function `entmax`, unless given. `ModelConfig` has the alpha of the function softmax,
# which is OpenNMT-py's default.
ENTMAX_ALPHA = 1.5


def training_parser() -> ArgumentParser:
    """Return a parser of OpenNMT-py's training options and ours.

    The defaults of our options are those of the configurations that they end in.
    """
    parser = ArgumentParser()
    train_opts(parser)
    known = register(parser)
    for name in ("global_attention_function", "generator_function"):
        known[name].choices = list(ALPHAS)
    known["global_attention"].choices = list(NETWORK["global_attention"].names)
    known["decay_method"].choices = [*(known["decay_method"].choices or ()), "plateau", "cosine"]
    known["src_vocab"].required = False  # without a file, tokens are counted
    known["bucket_size"].default = DataConfig.bucket_size
    add = parser.add_argument
    add("-global_attention_alpha", type=float, default=ENTMAX_ALPHA)
    add("-generator_alpha", type=float, default=ENTMAX_ALPHA)
    add("-num_workers", type=int, default=DataConfig.num_workers)
    add(
        "-label_smoothing_prior",
        default=RunConfig.label_smoothing_prior,
        choices=["uniform", "unigram"],
    )
    for name, kind in (
        ("attention_warmup_steps", int),
        ("train_epochs", int),
        ("valid_epochs", int),
        ("max_seconds", float),
    ):
        add(f"-{name}", type=kind, default=getattr(TrainingConfig, name))
    for name, choices in (
        ("on_nonfinite", ["stop", "skip"]),
        ("matmul_dtype", ["float32", "bfloat16", "tf32"]),
        ("cuda_graphs", ["on", "off", "check"]),
        ("selection", ["loss", "token_accuracy", "exact_match", "macro_accuracy", "bleu"]),
    ):
        add(f"-{name}", default=getattr(TrainingConfig, name), choices=choices)
    for name in ("valid_decode_size", "valid_loss_size", "valid_beam_size", "max_length"):
        add(f"-{name}", type=int, default=getattr(ValidationConfig, name))
    add(
        "-valid_bleu_tokenize",
        default=ValidationConfig.valid_bleu_tokenize,
        choices=["13a", "intl", "zh", "char", "none"],
    )
    # A group of its own, which only the full help lists.
    add = parser.add_argument_group("Attention of a Transformer").add_argument
    for which in KINDS:
        add(f"-{which}_attention_function", default="softmax", choices=list(ATTENTION_ALPHAS))
        add(f"-{which}_attention_alpha", type=float, default=ENTMAX_ALPHA)
    add("-alpha_init_mean", type=float, default=ModelConfig.alpha_init_mean)
    add("-alpha_init_std", type=float, default=ModelConfig.alpha_init_std)
    add("-alpha_learning_rate", type=float, default=OptimizerConfig.alpha_learning_rate)
    return parser


_CORPUS_KEYS = ("path_src", "path_tgt", "weight", "transforms", "src_prefix", "tgt_prefix")


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


def training_setup(arguments: Sequence[str]) -> TrainingSetup:
    """Read the command line of `train` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    parser = training_parser()
    options = read_options(parser, arguments)
    refuse_unsupported(options, REFUSED_IN_TRAINING, parser)
    check_values(options)
    record = {name: value for name, value in sorted(options.values.items()) if name != "config"}
    return TrainingSetup(
        run=_run(options),
        data=_data(options),
        vocabulary=_vocabulary(options),
        model=_model(options),
        training=_training(options),
        validation=ValidationConfig(**_pick(options, ValidationConfig)),
        record=record,
    )


def _pick(options: Options, kind: type, **computed: Any) -> dict[str, Any]:
    """Return values for the fields of a dataclass: `computed`, or the option of the same name."""
    names = {field.name for field in fields(kind)}
    return {name: options[name] for name in names if name in options.values} | computed


def _alpha(options: Options, name: str) -> Any:
    """Return the alpha of `name`_function: a number, or how it is learned."""
    function, alpha = f"{name}_function", f"{name}_alpha"
    fixed = ATTENTION_ALPHAS[options[function]]
    if fixed is None:
        return float(options[alpha])
    if options.given(alpha):
        raise options.error(alpha, f"is only read with {function}: entmax, not {options[function]}")
    return fixed


def _size(options: Options, both: str, side: str) -> int:
    """Return the size of a side; as in OpenNMT-py, the option for both sides wins."""
    value: int = options[both]
    return value if value > 0 else options[side]


def _model(options: Options) -> ModelConfig:
    _refuse_models(options)
    encoder_size = _size(options, "rnn_size", "enc_rnn_size")
    size = _size(options, "rnn_size", "dec_rnn_size")
    if encoder_size != size:
        raise options.error(
            "enc_rnn_size", f"must equal dec_rnn_size, {encoder_size} is not {size}"
        )
    values = _pick(
        options,
        ModelConfig,
        rnn_size=size,
        enc_layers=_size(options, "layers", "enc_layers"),
        dec_layers=_size(options, "layers", "dec_layers"),
        src_word_vec_size=_size(options, "word_vec_size", "src_word_vec_size"),
        tgt_word_vec_size=_size(options, "word_vec_size", "tgt_word_vec_size"),
        input_feed=bool(options["input_feed"]),
        dropout=options["dropout"][0],
        attention_dropout=options["attention_dropout"][0],
        global_attention_alpha=_alpha(options, "global_attention"),
        generator_alpha=_alpha(options, "generator"),
        **{f"{kind}_attention_alpha": _alpha(options, f"{kind}_attention") for kind in KINDS},
    )
    if options["share_embeddings"] and not options["share_vocab"]:
        raise options.error("share_embeddings", "needs share_vocab: true")
    try:
        config = ModelConfig(**values)
    except NetworkError as error:
        # A range is checked before, so this is an alpha where it means nothing.
        key = error.key.replace("_attention_alpha", "_attention_function")
        raise options.error(key, error.reason) from None
    _check_attention(options)
    return config


def _refuse_models(options: Options) -> None:
    """Refuse models that are not supported, and combinations that make no sense."""
    for name, values in SUPPORTED_VALUES.items():
        if name != "transforms" and options[name] not in values:
            raise options.error(
                name, f"{options[name]!r} is not supported; supported: {', '.join(values)}"
            )
    transformer = options["decoder_type"] == "transformer"
    if transformer and options["global_attention_function"] != "softmax":
        raise options.error(
            "global_attention_function",
            "is of recurrent decoders; a Transformer has encoder_attention_function, "
            "decoder_attention_function and context_attention_function",
        )


def _check_attention(options: Options) -> None:
    """Refuse options of attention where they mean nothing."""
    transformer = options["decoder_type"] == "transformer"
    functions = {options[f"{kind}_attention_function"] for kind in KINDS}
    for name in ("alpha_init_mean", "alpha_init_std", "alpha_learning_rate"):
        if options.given(name) and options[name] is not None and not {LEARNED, SHARED} & functions:
            raise options.error(name, f"is only read with a function that is {LEARNED} or {SHARED}")
    if not options["attention_warmup_steps"]:
        return
    if not transformer and options["global_attention_function"] == "softmax":
        raise options.error("attention_warmup_steps", "needs a sparse global_attention_function")
    if not transformer and options["global_attention"] == "none":
        raise options.error("attention_warmup_steps", "needs global_attention")
    if transformer and functions <= {"softmax", LEARNED, SHARED}:
        raise options.error(
            "attention_warmup_steps", "needs an attention function that is sparse and not learned"
        )


def _corpus(options: Options, name: str, entry: Any) -> CorpusConfig:
    if not isinstance(entry, dict):
        raise options.error("data", f"corpus {name!r} must be a mapping with path_src and path_tgt")
    for key in entry:
        if key in ("src_feats", "path_align"):
            raise options.error("data", f"corpus {name!r}: {key} is not supported")
        if key not in _CORPUS_KEYS:
            raise options.error(
                "data",
                f"corpus {name!r}: no such key {key!r}{nearest(str(key), _CORPUS_KEYS)}",
            )
    for key in ("path_src", "path_tgt"):
        if not isinstance(entry.get(key), str):
            raise options.error("data", f"corpus {name!r}: {key} is required")
        if not os.path.isfile(entry[key]):
            raise options.no_file("data", entry[key], f"corpus {name!r}: {key}: ")
    weight = entry.get("weight", 1)
    if type(weight) is not int or weight < 1:
        raise options.error("data", f"corpus {name!r}: weight must be a whole number above 0")
    transforms = entry.get("transforms", options["transforms"]) or []
    if isinstance(transforms, str):
        transforms = [transforms]
    if not isinstance(transforms, list) or not all(isinstance(t, str) for t in transforms):
        raise options.error("data", f"corpus {name!r}: transforms: expected names in a list")
    for transform in transforms:
        if transform not in AVAILABLE_TRANSFORMS:
            known = nearest(str(transform), AVAILABLE_TRANSFORMS)
            raise options.error("data", f"corpus {name!r}: no transform {transform!r}{known}")
        if transform in FEATURE_TRANSFORMS:
            raise options.error("data", f"corpus {name!r}: {transform}: no source features here")
    for key in ("src_prefix", "tgt_prefix") if "prefix" in transforms else ():
        if not isinstance(entry.get(key), str):
            raise options.error(
                "data",
                f"corpus {name!r}: the transform prefix needs src_prefix and tgt_prefix, "
                f"tokens between spaces (in quotes where YAML would see a number)",
            )
    return CorpusConfig(name, **{**entry, "weight": weight, "transforms": tuple(transforms)})


def _data(options: Options) -> DataConfig:
    entries = options["data"]
    if not isinstance(entries, dict) or not set(entries) - {VALID}:
        raise options.error("data", "expected at least one corpus with path_src and path_tgt")
    corpora = [_corpus(options, str(name), entry) for name, entry in entries.items()]
    return DataConfig(
        **_pick(
            options,
            DataConfig,
            corpora=tuple(corpus for corpus in corpora if corpus.name != VALID),
            valid=next((corpus for corpus in corpora if corpus.name == VALID), None),
            seed=_seed(options),
            transform_options={name: options[name] for name in transform_option_names()},
        )
    )


def _vocabulary(options: Options) -> VocabularyConfig:
    config = VocabularyConfig(**_pick(options, VocabularyConfig))
    one = config.src_vocab if config.src_vocab == config.tgt_vocab else None
    if one is not None and not config.share_vocab and not os.path.isfile(one):
        raise options.error("tgt_vocab", "is src_vocab, and not there yet: name two files")
    return config


def _training(options: Options) -> TrainingConfig:
    for values, starts in (
        ("accum_count", "accum_steps"),
        ("dropout", "dropout_steps"),
        ("attention_dropout", "dropout_steps"),
    ):
        if len(options[values]) != len(options[starts]):
            raise options.error(values, f"needs as many values as {starts}")
    optimizer = OptimizerConfig(
        **_pick(options, OptimizerConfig, rnn_size=_size(options, "rnn_size", "dec_rnn_size"))
    )
    by_epochs = options["train_epochs"] is not None
    steps = None if by_epochs and not options.given("train_steps") else options["train_steps"]
    if optimizer.decay_method == "cosine" and steps is None:
        raise options.error(
            "decay_method", "cosine ends at train_steps: set them too, or name another method"
        )
    if options.given("valid_epochs") and options.given("valid_steps"):
        raise options.error("valid_epochs", "give valid_steps or valid_epochs, not both")
    recurrent = (
        options["encoder_type"] in ("rnn", "brnn")
        or (options["decoder_type"] == "rnn" and options["input_feed"])
    ) and options["rnn_type"] == "LSTM"
    if options["matmul_dtype"] == "tf32" and not options["gpu_ranks"]:
        raise options.error("matmul_dtype", "tf32 needs a GPU: give gpu_ranks")
    if options["matmul_dtype"] == "bfloat16" and not recurrent:
        raise options.error(
            "matmul_dtype", "bfloat16 is of LSTM encoders and input-feeding LSTM decoders"
        )
    if options["label_smoothing_prior"] != "uniform" and options["label_smoothing"] == 0:
        raise options.error("label_smoothing_prior", "is only read with label_smoothing above 0")
    for name, without in (("selection", "loss"), ("early_stopping", 0)):
        if options[name] != without and VALID not in options["data"]:
            raise options.error(name, "needs a corpus named valid under data")
    if optimizer.decay_method == "plateau" and VALID not in options["data"]:
        raise options.error("decay_method", "plateau needs a corpus named valid under data")
    tuples = ("accum_count", "accum_steps", "dropout", "attention_dropout", "dropout_steps")
    count = tuple(number * options["world_size"] for number in options["accum_count"])
    picked = _pick(options, TrainingConfig, optimizer=optimizer, train_steps=steps)
    picked |= {name: tuple(options[name]) for name in tuples} | {"accum_count": count}
    return TrainingConfig(**picked)


def _seed(options: Options) -> int:
    """Return the seed; -1, OpenNMT-py's "not set", is 0, so that runs are repeatable."""
    return max(int(options["seed"]), 0)


def _vectors(options: Options) -> dict[str, str | None]:
    """Return the files of word vectors of both sides."""
    for name in ("both_embeddings", "src_embeddings", "tgt_embeddings"):
        path = options[name]
        if path is None:
            continue
        if not os.path.isfile(path):
            raise options.no_file(name, path)
        if options["embeddings_type"] is None:
            raise options.error(name, "needs embeddings_type: GloVe or word2vec")
        if name != "both_embeddings" and options["both_embeddings"] is not None:
            raise options.error(name, "give both_embeddings, or one for each side")
        if name != "both_embeddings" and options["share_embeddings"]:
            raise options.error(name, "with share_embeddings there is one table: both_embeddings")
    both = options["both_embeddings"]
    return {side: both or options[side] for side in ("src_embeddings", "tgt_embeddings")}


def _tensorboard(options: Options) -> str | None:
    """Return the folder of TensorBoard's files, or None.

    By default a folder of the run's own, so that runs do not mix; OpenNMT-py adds the time to one
    common folder.
    """
    if not options["tensorboard"]:
        return None
    if options.given("tensorboard_log_dir"):
        return str(options["tensorboard_log_dir"])
    return os.path.join(options["save_model"], "tensorboard")


def _run(options: Options) -> RunConfig:
    ranks = options["gpu_ranks"]
    if len(ranks) > max(options["world_size"], int(os.environ.get("WORLD_SIZE", "1"))):
        raise options.error(
            "gpu_ranks",
            f"names {counted(len(ranks), 'GPU')}: start as many processes with torchrun",
        )
    if os.path.isfile(options["save_model"]):
        raise options.error("save_model", f"{options['save_model']} is a file; name a folder")
    return RunConfig(
        **_pick(
            options,
            RunConfig,
            train_from=options["train_from"] or None,
            seed=_seed(options),
            gpu=ranks[0] if ranks else None,
            tensorboard=_tensorboard(options),
            **_vectors(options),
        )
    )
