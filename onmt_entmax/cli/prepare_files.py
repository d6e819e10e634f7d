"""Make training files for translation from parallel text.

    onmt-entmax prepare files --out run/mt/mine --languages de en --train corpus.de corpus.en
    onmt-entmax prepare files --out run/mt/mine --languages de en --train corpus.de corpus.en \\
        --val dev.de dev.en --test test.de test.en --subwords separate --symbols 25000

Lines are normalised (Unicode NFC, single spaces; Romanian loses its diacritics). Subwords are
learned from the training part. Training pairs that are empty, too long or too different in length
are dropped. The folder then has

    {train,val}.{de,en}   text
    test/test.{de,en}     text of the test set, which neither training nor selection reads
    bpe.model, sp.model   subword models (--subwords separate: one for each language)
    train.yaml            for `onmt-entmax train -config`: a model for one CPU core
    prepare.json          how the files were made

and the next commands are printed. Lines remain text: OpenNMT-py's transform `onmt_tokenize`, or
`sentencepiece` with --subword_type sentencepiece, segments them in training and translation, and
joins the subwords of translations.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.next_commands import next_text
from onmt_entmax.cli.parallel_corpus import HELD_OUT
from onmt_entmax.cli.parallel_preparation import prepare
from onmt_entmax.cli.parallel_subwords import available_subword_type
from onmt_entmax.cli.planning_options import planning_options
from onmt_entmax.rules import number, whole


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, whole(1, 10**9)
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add(
        "--languages",
        nargs=2,
        required=True,
        metavar=("SRC", "TGT"),
        help="source and target language, with which the names of files end",
    )
    texts = {
        "train": "training text; all files may end in .xz or .gz",
        "val": "development text (default: some of the training pairs)",
        "test": "test text (default: none)",
    }
    for part, text in texts.items():
        add(f"--{part}", type=Path, nargs=2, required=part == "train", metavar="FILE", help=text)
    add(
        "--val_size",
        type=count,
        metavar="N",
        help=f"without --val: number of training pairs to hold out (default {HELD_OUT})",
    )
    add("--seed", type=int, metavar="N", help="without --val: seed of their choice (default 1)")
    planning_options(parser)
    add("--tokens", action="store_true", help="the lines are tokens separated by spaces")
    add(
        "--subword_type",
        choices=["bpe", "sentencepiece"],
        help="type of subwords (default bpe; without pyonmttok, sentencepiece)",
    )
    add(
        "--subwords",
        choices=["joint", "separate"],
        default="joint",
        help="one subword model for both languages, or one for each (default joint)",
    )
    add(
        "--symbols",
        type=count,
        default=10_000,
        metavar="N",
        help="merges (BPE) or pieces of each subword model, at most (default 10,000)",
    )
    add(
        "--max_tokens",
        type=count,
        default=100,
        metavar="N",
        help="drop training pairs with more subwords on a side (default 100)",
    )
    add(
        "--max_ratio",
        type=number(1, 10**6),
        default=9,
        metavar="R",
        help="drop pairs whose lengths differ by a larger factor (default 9)",
    )
    return parser


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line, and choose the type of subwords.

    Raises:
        UserError: options exclude each other, or `--languages` cannot end the names of files.
        MissingLibraryError: the user chose `bpe`, and its library is not installed.
        BrokenLibraryError: the user chose `bpe`, and its library cannot be imported.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.val and (options.val_size or options.seed is not None):
        parser.error("--val_size and --seed choose training pairs for --val, which you name")
    if len(set(options.languages)) == 1:
        parser.error("--languages: give two different names, such as `src tgt` for one language")
    if any("/" in name for name in options.languages):
        parser.error("--languages: the names end the names of files, so they cannot have a /")
    options.seed = 1 if options.seed is None else options.seed
    options.subword_type = available_subword_type(options.subword_type)
    return options


def main(arguments: Sequence[str]) -> int:
    """Prepare the files; return the exit status."""
    options = parse_arguments(arguments)
    print(next_text(prepare(options)))
    return 0
