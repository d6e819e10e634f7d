"""Count errors: wrong predictions of an inflection model by kind, or errors of beam search.

    python -m tools.papers.errors words --train run/medium/data/train --dev run/medium/data/dev \\
        --report run/medium/dev.report.jsonl
    python -m tools.papers.errors search run/mine --source dev.src --beam_size 5

`words -h` and `search -h` describe what is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.rules import whole
from tools.papers.arguments import AddArgument
from tools.papers.search_errors import SearchLimits, search_errors
from tools.papers.subcommands import add_subcommand
from tools.papers.word_errors import word_errors

WORDS = """Print tables of the words of a development set by kind, and of a model's errors.

Each table has the number of words of a kind, their accuracy and their share of all errors: by
certificate, by probability of the form, by how often training has the tags and the characters, and
by language. The last one has the kinds of errors. --train and --dev are files of `onmt-entmax
prepare sigmorphon` without `.src` and `.tgt`; --report is the exactness report of --dev.
"""

SEARCH = """Count the sources for which beam search misses the most probable output.

Exact search finds that output within --budget prefixes. Also counted are the sources for which the
empty output is possible, or the most probable (Stahlberg and Byrne 2019, "On NMT Search Errors and
Model Errors: Cat Got Your Tongue?"). Log-probabilities that differ by less than 1e-5 are equal.
"""

_COUNT = whole(1, 10**9)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `tables_of` maps these options to the tables of the subcommand."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    words = add_subcommand(commands, "words", WORDS)
    words.set_defaults(tables_of=_tables_of_words)
    _add_words(words.add_argument)
    search = add_subcommand(commands, "search", SEARCH)
    search.set_defaults(tables_of=_table_of_search)
    _add_search(search.add_argument)
    return parser.parse_args(arguments)


def _add_words(add: AddArgument) -> None:
    """Add the arguments of `words`."""
    add("--train", type=Path, required=True, metavar="PREFIX", help="training files")
    add("--dev", type=Path, required=True, metavar="PREFIX", help="development files")
    add("--report", type=Path, required=True, metavar="FILE", help="exactness report")
    add("--languages", type=_COUNT, default=15, metavar="N", help="list the N worst (default 15)")


def _tables_of_words(options: argparse.Namespace) -> str:
    """Return what `words` prints."""
    return word_errors(options.train, options.dev, options.report, options.languages)


def _add_search(add: AddArgument) -> None:
    """Add the arguments of `search`."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
    add("--source", type=Path, required=True, metavar="FILE", help="a source in each line")
    add("--beam_size", type=_COUNT, default=5, metavar="N", help="default 5")
    longest = "longest output in tokens (default 100)"
    add("--max_length", type=_COUNT, default=100, metavar="N", help=longest)
    prefixes = "prefixes that exact search may continue (default 10000)"
    add("--budget", type=_COUNT, default=10_000, metavar="N", help=prefixes)
    add("--batch_size", type=_COUNT, default=64, metavar="N", help="sources (default 64)")


def _table_of_search(options: argparse.Namespace) -> str:
    """Return what `search` prints."""
    limits = SearchLimits(options.beam_size, options.max_length, options.budget)
    return search_errors(options.models, options.source, limits, options.batch_size)


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit status."""
    options = parse_arguments(arguments)
    print(options.tables_of(options))
    return 0


if __name__ == "__main__":
    run_script(main)
