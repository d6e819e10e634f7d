"""Group the errors of an inflection model, or count the errors of beam search.

    python -m tools.papers.errors words --train run/medium/data/train --dev run/medium/data/dev \\
        --report run/medium/dev.report.jsonl
    python -m tools.papers.errors search run/mine --source dev.src --beam_size 5

words    prints the number of words of a kind, their accuracy and their share of all errors: by
         certificate, by probability of the form, by how often training has the tags and the
         characters, by language, and by what is wrong. --train and --dev are files of `onmt-entmax
         prepare sigmorphon` without `.src` and `.tgt`; --report is the exactness report of --dev.
search   counts the sources for which beam search misses the most probable output, which exact
         search finds within --budget prefixes, and those for which the empty output is possible,
         or the most probable (Stahlberg and Byrne 2019, "On NMT Search Errors and Model Errors:
         Cat Got Your Tongue?"). Log-probabilities that differ by less than 1e-5 are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.rules import whole
from tools.papers.search_errors import search_errors
from tools.papers.word_errors import word_errors


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit status."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    count = whole(1, 10**9)
    command = commands.add_parser("words")
    command.set_defaults(do=word_errors)
    add: Any = command.add_argument
    add("--train", type=Path, required=True, metavar="PREFIX", help="training files")
    add("--dev", type=Path, required=True, metavar="PREFIX", help="development files")
    add("--report", type=Path, required=True, metavar="FILE", help="exactness report")
    add("--languages", type=count, default=15, metavar="N", help="list the N worst (default 15)")
    command = commands.add_parser("search")
    command.set_defaults(do=search_errors)
    add = command.add_argument
    add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--beam_size", type=count, default=5, metavar="N")
    add("--max_length", type=count, default=100, metavar="N")
    add("--budget", type=count, default=10_000, help="prefixes of exact search")
    add("--batch_size", type=count, default=64, metavar="N")
    options = parser.parse_args(arguments)
    print(options.do(options))
    return 0


if __name__ == "__main__":
    run_script(main)
