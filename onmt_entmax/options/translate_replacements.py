"""Replace values of OpenNMT-py's `translate` options that mean something else here.

The notes tell the user which values are replaced, and which options have no effect.
"""

import shlex

from onmt_entmax.options.given import Options
from onmt_entmax.options.translate_table import OPTIONS

# Length penalty and coverage penalty, each with its weight. They rank the hypotheses of a search;
# random sampling does not read them, here or in OpenNMT-py.
_PENALTIES = ("length_penalty", "alpha", "coverage_penalty", "beta")


def with_replacements(options: Options) -> Options:
    """Return the options with values that this package can follow.

    Args:
        options: all options; the notes on them are extended.
    """
    _note_unread_targets(options)
    options = _batches_of_sentences(options)
    if draws_samples(options):
        options = _beam_as_samples(_without_penalties(options))
    return options


def _batches_of_sentences(options: Options) -> Options:
    """Replace a batch size in tokens by the default number of sentences."""
    if options["batch_type"] != "tokens":
        return options
    size = OPTIONS["batch_size"].default
    options.notes.replaced.append(f"batch_type tokens as batch_size {size} sentences")
    return options.with_values(batch_type="sents", batch_size=size)


def _note_unread_targets(options: Options) -> None:
    """Note that `tgt` has no effect without `tgt_prefix`, and which command scores targets."""
    if not options["tgt"] or options["tgt_prefix"]:
        return
    models = ["-model", *options["model"]]
    files = ["-src", options["src"], "-tgt", options["tgt"], "-output", "scores.jsonl"]
    command = shlex.join(["onmt-entmax", "score", *models, *files])
    options.notes.ignored.append(f"tgt (without tgt_prefix; for its probabilities: {command})")


def draws_samples(options: Options) -> bool:
    """Return whether outputs are drawn at random, not searched for."""
    return bool(options["random_sampling_topk"] or options["random_sampling_topp"])


def _without_penalties(options: Options) -> Options:
    """Set the penalties back to their defaults."""
    changed = [name for name in _PENALTIES if options[name] != OPTIONS[name].default]
    options.notes.ignored += [f"{name} (of a search)" for name in changed]
    return options.with_values(**{name: OPTIONS[name].default for name in changed})


def _beam_as_samples(options: Options) -> Options:
    """Set the beam size, which is the number of samples in OpenNMT-py, back to its default.

    Here, `n_best` is the number of samples. A beam size of 1 needs no note: OpenNMT-py 1 sampled
    only with it, so that many commands have it and mean no number of samples.
    """
    n_best = options["n_best"]
    if not options.is_set("beam_size") or options["beam_size"] in (1, n_best):
        return options
    options.notes.replaced.append(f"beam_size in random sampling as n_best {n_best} samples")
    return options.with_values(beam_size=OPTIONS["beam_size"].default)
