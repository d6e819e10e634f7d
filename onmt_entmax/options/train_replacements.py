"""Replace values of OpenNMT-py's `train` options that mean something else here.

The notes tell the user which values are replaced, and which options have no effect.
"""

from onmt_entmax.options.given import COMMAND_LINE, Options
from onmt_entmax.options.train_table import training_options

# Options of the network that only one kind of it reads, by the name of the kind.
_READ_BY = {
    "recurrent decoder": "rnn_type input_feed bridge context_gate global_attention".split(),
    "Transformer": "heads transformer_ff attention_dropout self_attn_type max_relative_positions "
    "aan_useffn pos_ffn_activation_fn".split(),
}


def with_replacements(options: Options) -> Options:
    """Return the options with values that this package can follow.

    Args:
        options: all options; the notes on them are extended.
    """
    options = _full_precision(options)
    options = _selection_for_criteria(options)
    options = _overwrite_only_as_a_flag(options)
    _note_other_networks(options)
    return options


def _full_precision(options: Options) -> Options:
    """Replace half precision by 32-bit weights, with tf32 products on a GPU."""
    if options["model_dtype"] != "fp16":
        return options
    if not options["gpu_ranks"] or options.is_set("matmul_dtype"):
        options.notes.replaced.append("model_dtype fp16 as 32-bit floats")
        return options.with_values(model_dtype="fp32")
    options.notes.replaced.append("model_dtype fp16 as 32-bit floats with matmul_dtype tf32")
    return options.with_values(model_dtype="fp32", matmul_dtype="tf32")


def _selection_for_criteria(options: Options) -> Options:
    """Replace the criteria of early stopping by the selection of the best checkpoint.

    Training stops early by the same measure that selects the checkpoint; a selection that the user
    set has priority.
    """
    criteria = options["early_stopping_criteria"]
    if not criteria or options.is_set("selection"):
        return options.with_values(early_stopping_criteria=[])
    selection = "token_accuracy" if criteria == ["accuracy"] else "loss"
    words = " ".join(map(str, criteria))
    options.notes.replaced.append(f"early_stopping_criteria {words} as selection {selection}")
    return options.with_values(early_stopping_criteria=[], selection=selection)


def _overwrite_only_as_a_flag(options: Options) -> Options:
    """Set `overwrite` back to its default if a file sets it.

    In a file of OpenNMT-py it is about vocabularies, and must not delete checkpoints.
    """
    if not options["overwrite"] or options.origin["overwrite"] == COMMAND_LINE:
        return options
    options.notes.ignored.append("overwrite (only as a flag)")
    return options.with_values(overwrite=False)


def _note_other_networks(options: Options) -> None:
    """Note options of the kind of network that is not trained."""
    defaults = training_options()
    is_transformer = options["decoder_type"] == "transformer"
    other_kind = "recurrent decoder" if is_transformer else "Transformer"
    for name in _READ_BY[other_kind]:
        if options.is_set(name) and options[name] != defaults[name].default:
            options.notes.ignored.append(f"{name} (of a {other_kind})")
