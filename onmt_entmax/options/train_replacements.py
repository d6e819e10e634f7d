"""Replace options of OpenNMT-py's `train` that are others here, and note those without effect."""

from dataclasses import replace
from typing import Any

from onmt_entmax.options.given import COMMAND_LINE, Options
from onmt_entmax.options.train_table import training_options

# Options of the network that only one kind of it reads, by the name of the kind.
_READ_BY = {
    "recurrent decoder": "rnn_type input_feed bridge context_gate global_attention".split(),
    "Transformer": "heads transformer_ff attention_dropout self_attn_type max_relative_positions "
    "aan_useffn pos_ffn_activation_fn".split(),
}


def with_replacements(options: Options) -> Options:
    """Return the options with those of OpenNMT-py replaced that have another value or name here.

    Args:
        options: their notes receive what is replaced, or has no effect.
    """
    values = dict(options.values)
    values |= _full_precision(options)
    values |= _selection_for_criteria(options)
    values |= _overwrite_as_a_flag(options)
    _note_other_networks(options)
    return replace(options, values=values)


def _full_precision(options: Options) -> dict[str, Any]:
    """Return what replaces half precision: 32-bit weights, with tf32 products on a GPU; note it."""
    if options["model_dtype"] != "fp16":
        return {}
    if not options["gpu_ranks"] or options.given("matmul_dtype"):
        options.notes.replaced.append("model_dtype fp16 as 32-bit floats")
        return {"model_dtype": "fp32"}
    options.notes.replaced.append("model_dtype fp16 as 32-bit floats with matmul_dtype tf32")
    return {"model_dtype": "fp32", "matmul_dtype": "tf32"}


def _selection_for_criteria(options: Options) -> dict[str, Any]:
    """Return the selection that replaces criteria of early stopping; note it."""
    criteria = options["early_stopping_criteria"]
    if not criteria or options.given("selection"):
        return {"early_stopping_criteria": []}
    selection = "token_accuracy" if criteria == ["accuracy"] else "loss"
    words = " ".join(map(str, criteria))
    options.notes.replaced.append(f"early_stopping_criteria {words} as selection {selection}")
    return {"early_stopping_criteria": [], "selection": selection}


def _overwrite_as_a_flag(options: Options) -> dict[str, Any]:
    """Return the default of `overwrite` if a file gives it; note it.

    In a file of OpenNMT-py it is about vocabularies, and must not delete checkpoints.
    """
    if not options["overwrite"] or options.origin["overwrite"] == COMMAND_LINE:
        return {}
    options.notes.ignored.append("overwrite (only as a flag)")
    return {"overwrite": False}


def _note_other_networks(options: Options) -> None:
    """Note the options of the kind of network that is not trained."""
    defaults = training_options()
    is_transformer = options["decoder_type"] == "transformer"
    other_kind = "recurrent decoder" if is_transformer else "Transformer"
    for name in _READ_BY[other_kind]:
        if options.given(name) and options[name] != defaults[name].default:
            options.notes.ignored.append(f"{name} (of a {other_kind})")
