"""Convert the options that a checkpoint of OpenNMT-py records, and the network they describe."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import yaml

from onmt_entmax.cli.foreign_checkpoint import ImportingError
from onmt_entmax.config import ConfigError, ModelConfig
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.data.transform_options import MAPPINGS, TransformError
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.files.parsing import parse_yaml
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.groups import SIDES_OF
from onmt_entmax.options.kept import TRAINING_OPTIONS
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.options.train_table import training_options
from onmt_entmax.rules import shown

# OpenNMT-py's mappings from scores to probabilities, and their alpha here.
_STOCK_ALPHAS = {"softmax": 1.0, "sparsemax": 2.0}
# Supported values of the model options.
_SUPPORTED: Mapping[str, tuple[Any, ...]] = {
    "model_task": ("seq2seq",),
    "model_type": ("text",),
    "generator_function": tuple(_STOCK_ALPHAS),
    "global_attention_function": tuple(_STOCK_ALPHAS),
    "copy_attn": (False,),
    "coverage_attn": (False,),
}
# Options of the network that have the same name and meaning here.
_COPIED = (
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


def options_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a checkpoint, completed by defaults, as config.yaml has them.

    Options such as `layers` are replaced by those of each side, such as `enc_layers`. Values that
    config.yaml cannot hold are left out.

    Args:
        content: content of the checkpoint; `opt` has the options.
    """
    options = {name: option.default for name, option in training_options().items()}
    recorded = vars(content["opt"])
    options |= {name: value for name, value in recorded.items() if _fits_yaml({name: value})}
    for both, sides in SIDES_OF.items():
        if isinstance(options[both], int) and options[both] > 0:
            options |= dict.fromkeys(sides, options[both])
    return options


def _fits_yaml(value: Any) -> bool:
    """Return whether a value is the same after it was written to config.yaml and read again."""
    try:
        text = yaml.safe_dump(value, allow_unicode=True).encode().decode()
        return bool(parse_yaml(text) == value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def split_off_paths(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide the options of transforms and training by whether they name files.

    Paths are not kept, since a path in a stranger's checkpoint could name any file of the user.

    Returns:
        The options to keep, and the options that name files of subword models.
    """
    names = {*transform_options(), *TRAINING_OPTIONS}
    kept = {name: value for name, value in options.items() if name in names and value is not None}
    left_out = {name: kept.pop(name) for name in SUBWORD_FILES if name in kept}
    try:
        build_transforms([], Namespace(**kept), None)
    except TransformError:  # settings of the tokeniser may name a file, too
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
    network = {name: options[name] for name in _COPIED} | {
        "rnn_size": options["dec_rnn_size"],
        "input_feed": bool(options["input_feed"]),
        "dropout": _first(options["dropout"]),
        "attention_dropout": _first(options["attention_dropout"]),
        "global_attention_alpha": _STOCK_ALPHAS[attention],
        "generator_alpha": _STOCK_ALPHAS[options["generator_function"]],
    }
    try:
        return ModelConfig.read(network)
    except ConfigError as error:
        raise ImportingError(str(error)) from None


def _first(value: Any) -> Any:
    """Return the first value of a schedule, such as that of dropout; return other values as is."""
    return value[0] if isinstance(value, list) and value else value


def _refuse_unsupported(options: Mapping[str, Any]) -> None:
    """Refuse a network that this package does not have, or that it computes in another way.

    Raises:
        ImportingError: names the option.
    """
    for name, values in _SUPPORTED.items():
        if options[name] not in values:
            supported = ", ".join(map(str, values))
            raise ImportingError(
                f"{name}: {shown(options[name])} is not supported (only {supported})"
            )
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
