"""Replace options of OpenNMT-py's `translate` that mean something else here.

The notes of the options tell the user what was replaced, and what has no effect.
"""

import shlex
from dataclasses import replace
from typing import Any

from onmt_entmax.options.given import Options
from onmt_entmax.options.translate_table import OPTIONS

# Options of a search, which OpenNMT-py's random sampling does not read either. `alpha` and `beta`
# are the weights of the two penalties.
_PENALTIES = ("length_penalty", "alpha", "coverage_penalty", "beta")


def with_replacements(options: Options) -> Options:
    """Return the options, with another value for those that mean something else here.

    Args:
        options: their notes receive what is replaced, or has no effect.
    """
    replaced = _batches_of_sentences(options)
    _note_unread_targets(options)
    if draws_samples(options):
        replaced |= _without_search(options)
    return replace(options, values={**options.values, **replaced})


def _batches_of_sentences(options: Options) -> dict[str, Any]:
    """Return the options that replace a batch size in tokens, and note it."""
    if options["batch_type"] != "tokens":
        return {}
    size = OPTIONS["batch_size"].default
    options.notes.replaced.append(f"batch_type tokens as batch_size {size} sentences")
    return {"batch_type": "sents", "batch_size": size}


def _note_unread_targets(options: Options) -> None:
    """Note that `tgt` has no effect without `tgt_prefix`, and the command that scores it."""
    if not options["tgt"] or options["tgt_prefix"]:
        return
    models = ["-model", *options["model"]]
    files = ["-src", options["src"], "-tgt", options["tgt"], "-output", "scores.jsonl"]
    command = shlex.join(["onmt-entmax", "score", *models, *files])
    options.notes.ignored.append(f"tgt (without tgt_prefix; for its probabilities: {command})")


def _without_search(options: Options) -> dict[str, Any]:
    """Return the defaults of options of a search that random sampling does not read; note them."""
    defaults: dict[str, Any] = {}
    for name in _PENALTIES:
        if options[name] != OPTIONS[name].default:
            options.notes.ignored.append(f"{name} (of a search)")
            defaults[name] = OPTIONS[name].default
    n_best = options["n_best"]
    if options.given("beam_size") and options["beam_size"] not in (1, n_best):
        options.notes.replaced.append(f"beam_size in random sampling as n_best {n_best} samples")
        defaults["beam_size"] = OPTIONS["beam_size"].default
    return defaults


def draws_samples(options: Options) -> bool:
    """Tell whether outputs are drawn at random, not searched for."""
    return bool(options["random_sampling_topk"] or options["random_sampling_topp"])
