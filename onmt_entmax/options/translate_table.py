"""The table of the options of `translate`: default, type, help and topic of each.

`translate.py` reads and checks their values. Fields of the search's configurations are options too,
declared there. Names and defaults are OpenNMT-py's, unless a comment says otherwise.
"""

from functools import partial
from typing import get_args

from onmt_entmax.config import FEW, LIMIT, SIZE, TRANSFORMS, Option, declared
from onmt_entmax.opennmt import translate_opts
from onmt_entmax.options.declared import options_of
from onmt_entmax.rules import FLAG, Rule, number, one_of, whole
from onmt_entmax.search import Budget, Constraints, Penalties, Sampling, SearchConfig, SearchTask
from onmt_entmax.search.task import Method

_SEARCH = "Search and certificates"
_SAMPLING = "Sampling (OpenNMT-py's options from here on)"
_FILES = "Files"
_OUTPUTS = "Outputs"
TOPICS = (_SEARCH, _SAMPLING, _FILES, _OUTPUTS)
_TEXT = Rule(str)

OPTIONS = {
    "exactness_report": Option(
        None, _TEXT, "JSON Lines file with the certificate of each sentence.", _SEARCH
    ),
    "search": Option(
        SearchTask.method,
        one_of(*get_args(Method)),
        "exact: search on until the n_best are proven; enumerate: list the support.",
        _SEARCH,
    ),
    "budget": Option(
        Budget.expansions,
        LIMIT,
        "Prefixes per sentence that may be computed.",
        _SEARCH,
        needs="search: exact or search: enumerate or verify",
    ),
    "constraints": Option(
        None,
        _TEXT,
        "File of phrases that each line's output must contain, or must not.",
        _SEARCH,
    ),
    "constraint_regex": Option(
        None, _TEXT, "Regular expression over tokens that every output must match.", _SEARCH
    ),
    **{f"random_sampling_{name}": option for name, option in declared(Sampling).items()},
    "seed": Option(-1, whole(0, 2**32 - 1, off=-1), "Seed of the samples; -1 is 0.", _SAMPLING),
    "config": Option(None, _TEXT, "YAML file with any of these options.", _FILES),
    "model": Option(
        [],
        _TEXT,
        "Run folders or checkpoints; an ensemble averages probabilities.",
        _FILES,
        required=True,
    ),
    "src": Option(None, _TEXT, "File to translate.", _FILES, required=True),
    "output": Option("pred.txt", _TEXT, "File of translations.", _FILES),
    "tgt": Option(None, _TEXT, "File of target prefixes.", _FILES),
    "tgt_prefix": Option(False, FLAG, "Complete the prefixes in tgt.", _FILES, needs="tgt"),
    "transforms": Option(
        [], TRANSFORMS, "Transforms of the source, instead of training's subwords.", _FILES
    ),
    # OpenNMT-py's default is 30.
    "batch_size": Option(64, SIZE, "Sentences searched together.", _FILES),
    "batch_type": Option(
        "sents",
        one_of("sents", "tokens"),
        "tokens: the default batch_size, for the same outputs.",
        # Without a topic: `--help-all` alone lists what is here for files of OpenNMT-py.
    ),
    # OpenNMT-py's default of `gpu` and `seed` is -1: not set.
    "gpu": Option(
        -1, whole(0, 10_000, off=-1), "The GPU to use; -1, or no GPU here: the CPU.", _FILES
    ),
    **declared(SearchTask, SearchConfig, Penalties, Constraints),
    "n_best": Option(
        1,
        FEW,
        "Outputs per sentence, a line each.",
        _OUTPUTS,
        needs="search: beam or search: exact or mbr",
    ),
    "abstain": Option(
        0.0,
        number(0, 1),
        "Write an empty line if the best output has less probability (the sum of the n_best "
        "hypotheses with its text).",
        _OUTPUTS,
    ),
    "max_length": Option(100, whole(1, 10**6), "Longest output, in tokens.", _OUTPUTS),
    "ignore_when_blocking": Option(
        [], _TEXT, "Tokens that may repeat.", _OUTPUTS, needs="block_ngram_repeat"
    ),
    "ban_unk_token": Option(False, FLAG, "Exclude outputs with <unk>.", _OUTPUTS),
    "replace_unk": Option(
        False, FLAG, "Replace <unk> by the source word with the most attention.", _OUTPUTS
    ),
    "report_align": Option(
        False, FLAG, "Write the attended source positions to OUTPUT.align, as i-j.", _OUTPUTS
    ),
    "with_score": Option(
        False, FLAG, "Append a tab and its score to each output, as OpenNMT-py does.", _OUTPUTS
    ),
    "phrase_table": Option(
        "", _TEXT, "Lines of `source|||target` words.", _OUTPUTS, needs="replace_unk"
    ),
}


def translation_options() -> dict[str, Option]:
    """Return the options of `translate`."""
    return options_of(partial(translate_opts, dynamic=True), OPTIONS)
