"""Download the corpora of the papers, or take them from a folder, and prepare them.

    python -m tools.papers.corpora multi30k --out run/mt/multi30k
    python -m tools.papers.corpora wmt16 --out run/mt/roen --from my-copy \\
        --subwords separate --symbols 25000
    python -m tools.papers.corpora sigmorphon --out conll2018 --settings medium \\
        --languages english german
    python -m tools.papers.corpora scene emotions birds cal500 --out run/multilabel/data --test
    python -m tools.papers.corpora snli --out snli --from my-copy

Translation: multi30k, tanaka, tatoeba, kftt, kftt-raw, iwslt17, wmt16, wmt14. Sizes are compared
with the published ones, and `onmt-entmax prepare files` makes subwords and a configuration; further
arguments are passed to it. iwslt17, wmt16 and wmt14 need a local copy.

sigmorphon: CoNLL-SIGMORPHON 2018, task 1; --test takes the test sets too, whose checksums are not
known. CC BY-SA.

scene, emotions, birds, cal500, reuters: the multi-label data of Martins and Astudillo (2016), in
Mulan's splits (1,211, 391 and 322 training rows; in the paper 1,211, 393 and 323). cal500 has no
split: a fixed random choice of 400 of its 502 rows is the training file (in the paper 400 and 100).
reuters (RCV1-v2) comes through scikit-learn; this was never tried, since the data was not at hand.

snli: Stanford's corpus of sentence pairs (Bowman et al. 2015), version 1.0. CC BY-SA 4.0.

Files with known checksums are compared with them, and not fetched again: after an interruption, run
the same command.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.cli.sigmorphon_folder import SETTINGS
from tools.papers.multilabel_corpora import MULTILABEL, fetch_multilabel
from tools.papers.parallel_corpora import PARALLEL, prepare_parallel
from tools.papers.shared_task import Selection, fetch_sigmorphon
from tools.papers.snli_corpus import fetch_snli

# Options that apply only to some corpora.
CORPORA_OF_OPTIONS = {
    "languages": {"sigmorphon"},
    "settings": {"sigmorphon"},
    "test": {"sigmorphon", *MULTILABEL},
}


def _fetch_sigmorphon(options: argparse.Namespace) -> None:
    """Fetch the files of the shared task that the options select."""
    languages = None if options.languages == ["all"] else options.languages
    selection = Selection(languages, options.settings, options.test)
    fetch_sigmorphon(options.out, options.source, selection)


# Functions that fetch the corpora, except for parallel ones, which take further arguments.
FETCH: dict[str, Callable[[argparse.Namespace], None]] = {
    "sigmorphon": _fetch_sigmorphon,
    **{name: partial(fetch_multilabel, name) for name in MULTILABEL},
    "snli": fetch_snli,
}


def _check_options(
    parser: argparse.ArgumentParser, options: argparse.Namespace, more: Sequence[str]
) -> None:
    """Refuse options that do not apply to the corpora that the command line names.

    Args:
        parser: parser of the command line; prints the error.
        options: options that the parser knows.
        more: other arguments, which `prepare files` may know.
    """
    if more and options.names[0] not in PARALLEL:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if len(options.names) > 1 and {*options.names} & {*PARALLEL}:
        parser.error("a parallel corpus needs a command and a folder of its own")
    for option, corpora in CORPORA_OF_OPTIONS.items():
        is_given = getattr(options, option) != parser.get_default(option)
        if is_given and not corpora.intersection(options.names):
            parser.error(f"--{option} is not of {options.names[0]}")


class Arguments(NamedTuple):
    """A command line.

    Attributes:
        options: options of this script.
        more: further arguments, which `prepare files` gets.
    """

    options: argparse.Namespace
    more: list[str]


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    names = (*PARALLEL, *FETCH)
    add("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add("--from", dest="source", type=Path, metavar="FOLDER", help="folder with a local copy")
    add("--test", action="store_true", help="test sets too (of sigmorphon and multi-label data)")
    add("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, help="of sigmorphon")
    add("--languages", nargs="+", default=["all"], help="of sigmorphon (default: all)")
    options, more = parser.parse_known_args(arguments)
    _check_options(parser, options, more)
    return Arguments(options, more)


def main(arguments: Sequence[str]) -> int:
    """Fetch and prepare the corpora; return the exit status."""
    options, more = parse_arguments(arguments)
    first_name = options.names[0]
    if first_name in PARALLEL:  # the only corpus of the command line
        return prepare_parallel(PARALLEL[first_name], options, more)
    for name in options.names:
        FETCH[name](options)
    return 0


if __name__ == "__main__":
    run_script(main)
