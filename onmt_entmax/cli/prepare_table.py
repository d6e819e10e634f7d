"""Make training files from tables of strings: inflections, pronunciations, transliterations, ...

    onmt-entmax prepare table --train ro.train.tsv --dev ro.dev.tsv --out run/ro
    onmt-entmax prepare table --train *.trn --dev *.dev --columns source,tags,target --out run/all

Writes these files into the folder --out, and prints the next commands:

    {train,dev}.{src,tgt}  sources and targets as lines of tokens
    train.yaml             configuration for `onmt-entmax train -config`: a model for one CPU core,
                           trained for longer on larger data; with --minutes, the one that this
                           machine trains best in that time

A row has a source and a target; it may have tags and a language, too. The order is free:

    ploaie<TAB>p lʷ a j e                    --columns source,target --separator "target= "
    draw<TAB>V;V.PTCP;PST<TAB>drawn          --columns source,tags,target

--columns names the columns, and - leaves one out; a heading may name them instead. --separator
names the text between symbols, such as phones; "target=" divides targets into characters. Columns
and separators that you do not name are guessed, and printed before anything is written. The model
records them, so the next commands need no such options.

The language of a row is in a column, or --language names it. Otherwise it is the name of the file
without _train, -dev, .trn, .tsv and the like, if the files of --train have several such names.
Tables of one language need none.

Rows that cannot be read are listed, all at once; --skip-bad FILE writes them to FILE and goes on.
Warnings name likely mistakes.

--right_to_left trains a model that writes the last symbol first. It makes other errors than a
left-to-right model, and the two can be averaged.

--copy N copies symbols that fewer than N training sources have, and unknown ones, from source to
target; 0 copies none. Without it, N is chosen from the data, and printed.

--hallucinate N writes N hallucinated pairs for each training pair, as a second corpus,
hallucinated.{src,tgt}: random letters replace the stem that source and target share. They help if
the table has few words with many rows each, whose stems a model would learn by heart. Without this
option, --minutes decides: if there is time for many passes over the rows, it writes one pair for
each training pair of some languages, and prints how many. These languages have many rows of each
word, and change words at their ends. --hallucinate 0 writes none.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.preparation import prepare
from onmt_entmax.cli.preparation_options import SPLITS, check_outputs, common_options
from onmt_entmax.cli.split_files import SplitFile, with_languages
from onmt_entmax.cli.table_options import checked_columns, separators_of
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TARGET


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    options = _parser().parse_args(arguments)
    columns = checked_columns(options.columns, (SOURCE, TARGET))
    has_languages = LANGUAGE_COLUMN in columns
    files = [SplitFile(split, path) for split in SPLITS for path in getattr(options, split)]
    if not has_languages:
        files = with_languages(files, options.language)
    check_outputs(files, options)
    tables, task = read_tables(files, columns, separators=separators_of(options.separator))
    prepare(tables, task, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    for split in SPLITS:
        add(
            f"--{split}",
            type=Path,
            nargs="+",
            required=split != "test",
            default=[],
            help=f"tables of the {split} set",
        )
    add("--columns", default="", help="columns, such as source,target,tags,- (default: guessed)")
    add(
        "--separator",
        action="append",
        default=[],
        metavar="COLUMN=TEXT",
        help='text between symbols, such as "target= "; "target=" divides into characters '
        "(default: guessed)",
    )
    add("--language", help="language of all rows")
    common_options(parser)
    return parser
