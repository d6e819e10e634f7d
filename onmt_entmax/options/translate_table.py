"""The table of the options of `translate`: default, rule, help and topic of each.

Options of the search, such as `beam_size` and `mass`, are fields of its configurations, which
declare them; this file declares the others. Options that OpenNMT-py has keep its names, and its
defaults unless a comment says otherwise. `translate.py` reads the values.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import get_args

from onmt_entmax.config import FEW, LIMIT, SIZE, TRANSFORMS, AnyOf, Equals, IsOn, Option, declared
from onmt_entmax.config.declaring import PATH, TEXT
from onmt_entmax.opennmt import translate_opts
from onmt_entmax.options.declared import options_of
from onmt_entmax.rules import FLAG, number, one_of, whole
from onmt_entmax.search import Budget, Constraints, Penalties, Sampling, SearchConfig, SearchTask
from onmt_entmax.search.task import Method

_SEARCH = "Search and certificates"
# Most options under this heading and the later ones are OpenNMT-py's.
_SAMPLING = "Sampling (OpenNMT-py's options from here on)"
_FILES = "Files"
_OUTPUTS = "Outputs"
TOPICS = (_SEARCH, _SAMPLING, _FILES, _OUTPUTS)
"""Headings of the short help, in its order"""

_SEARCH_OPTIONS = {
    "exactness_report": Option(
        None, PATH, help="JSON Lines file with the certificate of each sentence."
    ),
    "search": Option(
        SearchTask.method,
        one_of(*get_args(Method)),
        help="beam: keep beam_size prefixes; exact: go on until the n_best are proven; enumerate: "
        "list all possible outputs.",
    ),
    "budget": Option(
        Budget.expansions,
        LIMIT,
        help="Most prefixes that exact, enumerate and verify may compute for a sentence.",
        needs=AnyOf(Equals("search", "exact"), Equals("search", "enumerate"), IsOn("verify")),
    ),
    "constraints": Option(
        None, PATH, help="File of phrases that each line's output must contain, or must not."
    ),
    "constraint_regex": Option(
        None, TEXT, help="Regular expression over tokens that every output must match."
    ),
}

_SAMPLING_OPTIONS = {
    # OpenNMT-py has -1 for a seed that is not set.
    "seed": Option(-1, whole(0, 2**32 - 1, off=-1), help="Seed of the samples; -1 is read as 0."),
}

_FILE_OPTIONS = {
    "config": Option(None, PATH, help="YAML file with any of these options."),
    "model": Option(
        [],
        PATH,
        help="Run folders or checkpoints; an ensemble averages probabilities.",
        required=True,
    ),
    "src": Option(None, PATH, help="File to translate.", required=True),
    "output": Option("pred.txt", PATH, help="File of translations."),
    "tgt": Option(None, PATH, help="File of target prefixes, a line for each line of src."),
    "tgt_prefix": Option(
        False, FLAG, help="Begin each output with its prefix in tgt.", needs=IsOn("tgt")
    ),
    "transforms": Option(
        [], TRANSFORMS, help="Transforms of the source, instead of training's subwords."
    ),
    # OpenNMT-py's default is 30.
    "batch_size": Option(64, SIZE, help="Sentences searched together."),
    # OpenNMT-py has -1 for a GPU that is not set.
    "gpu": Option(
        -1,
        whole(0, 10_000, off=-1),
        help="Number of the GPU; the CPU if this is -1, or without a GPU.",
    ),
}

_OUTPUT_OPTIONS = {
    "abstain": Option(
        0.0,
        number(0, 1),
        help="Write an empty line if the best output has less probability (the sum of the n_best "
        "hypotheses with its text).",
    ),
    "ignore_when_blocking": Option(
        [],
        TEXT,
        help="Tokens whose n-grams block_ngram_repeat lets repeat.",
        needs=IsOn("block_ngram_repeat"),
    ),
    "ban_unk_token": Option(False, FLAG, help="Exclude outputs with <unk>."),
    "replace_unk": Option(
        False, FLAG, help="Replace <unk> by the source word with the most attention."
    ),
    "report_align": Option(
        False, FLAG, help="Write the attended source positions to OUTPUT.align, as i-j."
    ),
    "with_score": Option(
        False, FLAG, help="Append a tab and its score to each output, as OpenNMT-py does."
    ),
    "phrase_table": Option(
        "",
        PATH,
        help="File of lines `source|||target`: replace_unk writes the target word for this source "
        "word.",
        needs=IsOn("replace_unk"),
    ),
}

# `SearchConfig` declares these, too, but allows 0: all finished hypotheses, or only empty outputs.
_STRICTER_FIELDS = {
    "n_best": Option(
        1,
        FEW,
        help="Outputs per sentence, a line each.",
        topic=_OUTPUTS,
        needs=AnyOf(Equals("search", "beam"), Equals("search", "exact"), IsOn("mbr")),
    ),
    "max_length": Option(100, whole(1, 10**6), help="Longest output, in tokens.", topic=_OUTPUTS),
}

# Without a topic, so that only `--help-all` lists it: it is for files written for OpenNMT-py.
_BATCH_TYPE = Option(
    "sents",
    one_of("sents", "tokens"),
    help="Unit of batch_size. tokens: batch_size is replaced by its default, in sentences; outputs "
    "do not depend on it.",
)


def _under(topic: str, options: Mapping[str, Option]) -> dict[str, Option]:
    """Return options with the heading that they stand under in the short help."""
    return {name: replace(option, topic=topic) for name, option in options.items()}


# The help lists the options of each topic in this order; `needs.py` checks conditions in it.
OPTIONS = {
    **_under(_SEARCH, _SEARCH_OPTIONS),
    **{f"random_sampling_{name}": option for name, option in declared(Sampling).items()},
    **_under(_SAMPLING, _SAMPLING_OPTIONS),
    **_under(_FILES, _FILE_OPTIONS),
    "batch_type": _BATCH_TYPE,
    **declared(SearchTask, SearchConfig, Penalties, Constraints),
    **_STRICTER_FIELDS,
    **_under(_OUTPUTS, _OUTPUT_OPTIONS),
}


def translation_options() -> dict[str, Option]:
    """Return the options of `translate`."""
    return options_of(partial(translate_opts, dynamic=True), OPTIONS)
