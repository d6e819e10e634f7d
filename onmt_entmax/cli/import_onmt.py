"""Convert a checkpoint of OpenNMT-py 2.3.0 into a model folder, to translate with certificates.

    onmt-entmax import-onmt model_step_100000.pt run/imported
    onmt-entmax translate -model run/imported -src test.src -output test.out -beam_size 5

OpenNMT-py's checkpoints are pickles, and unpickling can run any program. This command asks before
it opens one (unless --yes is given), and runs nothing in it: torch's `weights_only` reader accepts
only tensors and plain containers, and the classes of OpenNMT-py and torchtext that such checkpoints
name are replaced by empty ones, which keep their fields. A file that names anything else is
refused.

The folder keeps the options of the transforms and the main ones of the training, but no path: a
subword model is named when translating (-transforms, -src_subword_model, -tgt_subword_model).

Recurrent and Transformer models with softmax or sparsemax are converted; others (copy or coverage
attention, source features, language models, ...) are refused by name. Optimiser states are dropped,
so training cannot continue from an imported model.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from onmt_entmax.checkpoint import WeightsError, copy_weights, save
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.export import TRAINING
from onmt_entmax.cli.foreign_checkpoint import (
    ImportingError,
    read_checkpoint,
    vocabularies_of,
)
from onmt_entmax.cli.messages import warn
from onmt_entmax.config import ConfigError, ModelConfig
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.data.transforms import (
    MAPPINGS,
    TransformError,
    build_transforms,
)
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import parse_yaml
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.options.rivals import SIDES
from onmt_entmax.options.train_table import training_options
from onmt_entmax.rules import shown

# The mappings that OpenNMT-py has.
STOCK_ALPHAS = {"softmax": 1.0, "sparsemax": 2.0}
# Supported values of the model options.
SUPPORTED: Mapping[str, tuple[Any, ...]] = {
    "model_task": ("seq2seq",),
    "model_type": ("text",),
    "generator_function": tuple(STOCK_ALPHAS),
    "global_attention_function": tuple(STOCK_ALPHAS),
    "copy_attn": (False,),
    "coverage_attn": (False,),
}
# Options of the network that have the same name and meaning here.
COPIED = (
    "encoder_type",
    "decoder_type",
    "rnn_type",
    "enc_layers",
    "dec_layers",
    "src_word_vec_size",
    "tgt_word_vec_size",
    "bridge",
    "context_gate",
    "global_attention",
    "position_encoding",
    "share_embeddings",
    "share_decoder_embeddings",
    "heads",
    "transformer_ff",
    "self_attn_type",
    "max_relative_positions",
    "aan_useffn",
    "pos_ffn_activation_fn",
    "param_init",
    "param_init_glorot",
    "freeze_encoder",
    "freeze_decoder",
)


def fits_yaml(value: Any) -> bool:
    """Return whether config.yaml can hold a value: written and read, it is the same."""
    try:
        text = yaml.safe_dump(value, allow_unicode=True).encode().decode()
        return bool(parse_yaml(text) == value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def options_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the checkpoint, with defaults, and sizes for each side."""
    options = {name: option.default for name, option in training_options().items()}
    recorded = vars(content["opt"])
    options |= {name: value for name, value in recorded.items() if fits_yaml({name: value})}
    for both, sides in SIDES.items():
        if isinstance(options[both], int) and options[both] > 0:
            options |= dict.fromkeys(sides, options[both])
    return options


def split_off_paths(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options to keep, none of them a path, and those of subword models.

    A path of a stranger's checkpoint could lead to any file of the reader.
    """
    names = {*transform_options(), *TRAINING}
    kept = {name: value for name, value in options.items() if name in names and value is not None}
    left_out = {name: kept.pop(name) for name in SUBWORD_FILES if name in kept}
    try:
        build_transforms([], Namespace(**kept), None)
    except TransformError:  # settings of the tokeniser that name a file
        left_out |= {name: kept.pop(name) for name in MAPPINGS if name in kept}
    kept["transforms"] = transforms_of(options)
    return kept, {name: value for name, value in left_out.items() if value}


def model_config(options: Mapping[str, Any]) -> ModelConfig:
    """Return the model configuration that the options describe.

    Raises:
        ImportingError: an option is not supported.
    """
    _refuse_unsupported(options)
    recurrent = options["decoder_type"] == "rnn"
    attention = options["global_attention_function"] if recurrent else "softmax"
    network = {name: options[name] for name in COPIED} | {
        "rnn_size": options["dec_rnn_size"],
        "input_feed": bool(options["input_feed"]),
        "dropout": _first(options["dropout"]),
        "attention_dropout": _first(options["attention_dropout"]),
        "global_attention_alpha": STOCK_ALPHAS[attention],
        "generator_alpha": STOCK_ALPHAS[options["generator_function"]],
    }
    try:
        return ModelConfig.read(network)
    except ConfigError as error:
        raise ImportingError(str(error)) from None


def _first(value: Any) -> Any:
    """Return the first value of a schedule, such as that of dropout."""
    return value[0] if isinstance(value, list) and value else value


def _refuse_unsupported(options: Mapping[str, Any]) -> None:
    """Refuse networks that are none here, or another than OpenNMT-py's.

    Raises:
        ImportingError: names the option.
    """
    for name, values in SUPPORTED.items():
        if options[name] not in values:
            known = ", ".join(map(str, values))
            raise ImportingError(f"{name}: {shown(options[name])} is not supported (only {known})")
    if options["enc_rnn_size"] != options["dec_rnn_size"]:
        raise ImportingError("enc_rnn_size: must equal dec_rnn_size")
    if options["position_encoding"] and options["decoder_type"] == "rnn":
        raise ImportingError(
            "position_encoding: with a recurrent decoder, OpenNMT-py 2.3.0 trains another model "
            "than it searches: positions at every step there, the first one alone here"
        )
    if options["bridge"] is True and options["enc_layers"] != 1:
        raise ImportingError(
            "bridge: with several layers, OpenNMT-py 2.3.0's bridge mixes the sentences of a "
            "batch; here it does not, so the model would be another"
        )


def model_of(
    content: Mapping[str, Any], config: ModelConfig, vocabularies: Vocabularies
) -> SparseNMTModel:
    """Return the model with the weights of the checkpoint, in float32.

    Raises:
        ImportingError: a weight is missing, unknown, or of another shape.
    """
    weights = dict(content["model"])
    for name, weight in content["generator"].items():
        # OpenNMT-py's generator is Sequential(Linear, Cast, LogSoftmax).
        weights[f"generator.{str(name).removeprefix('0.')}"] = weight
    try:
        model = build_model(config, vocabularies)
        copy_weights(model, weights)
    except (ConfigError, WeightsError) as error:
        raise ImportingError(f"the weights do not fit the options: {error}") from None
    return model.eval()


def _may_open(path: Path) -> bool:
    """Ask whether to open a pickle.

    Raises:
        ImportingError: nobody is there to answer.
    """
    print(
        f"{path} is a pickle. Files of that kind can run any program when they are opened; this "
        "tool reads it with a reader that refuses to, yet open only files from people you trust.",
        file=sys.stderr,
    )
    if not sys.stdin.isatty():
        raise ImportingError("nobody to ask: give --yes to open it")
    print("Open it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def main(arguments: Sequence[str]) -> int:
    """Convert the checkpoint; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT.pt")
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="model folder to write; must be new"
    )
    parser.add_argument("--yes", action="store_true", help="open the pickle without asking")
    options = parser.parse_args(arguments)
    if options.folder.exists():
        raise ImportingError(f"{options.folder}: exists already; name a new folder")
    if not options.checkpoint.is_file():
        raise ImportingError(no_such_file(options.checkpoint))
    if not options.yes and not _may_open(options.checkpoint):
        print("not opened", file=sys.stderr)
        return 1
    content = read_checkpoint(options.checkpoint)
    recorded = options_of(content)
    config, vocabularies = model_config(recorded), vocabularies_of(content)
    model = model_of(content, config, vocabularies)
    kept, left_out = split_off_paths(recorded)
    save(options.folder, model, config, vocabularies, kept)
    kind = "Transformer" if config.decoder_type == "transformer" else config.rnn_type
    tokens = f"{len(vocabularies.source)} + {len(vocabularies.target)} tokens"
    print(f"{options.folder}: {kind}, {count_parameters(model):,} weights, {tokens}")
    for name, value in left_out.items():
        warn(f"{name}: {shown(value)} is not kept in the folder; name the file when translating")
    return 0
