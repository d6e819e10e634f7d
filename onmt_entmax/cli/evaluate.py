"""Compute accuracy and error rate of predicted tables, or of files of tokens.

PREDICTED TABLES

    onmt-entmax evaluate predicted/* --reference gold/*.tst --model run/2023/model
    onmt-entmax evaluate words.out.tsv --reference words.tsv --separator "target= "

Predicted tables have the columns of the gold tables, unless a heading names others. Rows are
matched by their queries (source, tags and language), in any order. Several tables are matched by
the languages in the names of their files.

A prediction is right if it is one of the gold targets of its query; nothing is normalised. A gold
query without a prediction counts as wrong. The error rate is the sum of the edit distances
(Levenshtein) to the nearest gold targets, divided by the sum of the lengths of these targets, both
in units of the target. If the units are phones, it is the PER; if they are characters, the CER. WER
is 100 minus the accuracy. The average is over languages. For tables of `predict --details`, a
second table says how many queries have each certificate, and how many of these are right.

FILES OF TOKENS

    onmt-entmax evaluate --source run/pilot/data/dev.src --reference run/pilot/data/dev.tgt \\
        --predictions run/pilot/dev.pred

prints the official measures of the CoNLL-SIGMORPHON 2018 shared task: the percentage of correct
forms and the mean edit distance for each language, and their averages over languages. Distances are
in tokens, which are characters in files of `prepare sigmorphon`. If a source has several
references, such as dreamed and dreamt, each is correct; a reference with `<unk>` never is. --nbest
N reads predictions of `translate -n_best N`, which have N lines for each word. It measures the
first prediction of each word, and the best one, which is nearest to a reference.

--report REPORT, of the same translation, shows what you gain if you leave less certain words to a
person: how many words remain, and how many of these are right. It does so for limits on the
probability of the output, and for certificates.

BOTH

--against OTHER compares with other predictions of the same rows or words. For each language and for
all together, it prints how many only one of the two gets right, and the p-value of McNemar's exact
test.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.evaluate_tables import evaluate_tables
from onmt_entmax.cli.evaluate_tokens import evaluate_tokens
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole

# Options of one of the two kinds of predictions, and the error if they are given with the other.
_ONLY_FOR_TOKENS = {
    **dict.fromkeys(
        ("source", "predictions", "report"), "goes with files of tokens, not with tables"
    ),
    "nbest": "goes with files of tokens; tables have a column for ranks",
}
_ONLY_FOR_TABLES = dict.fromkeys(
    ("model", "columns", "separator"), "goes with predicted tables; name them"
)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Raises:
        UserError: an option is missing, or does not go with the kind of predictions.
    """
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--reference",
        nargs="+",
        type=Path,
        metavar="GOLD",
        help="gold tables, or the target file of `prepare sigmorphon`",
    )
    parser.add_argument(
        "--against",
        nargs="+",
        type=Path,
        default=[],
        metavar="OTHER",
        help="other predictions of the same rows, or words",
    )
    parser.add_argument(
        "--json", type=Path, help="also write the scores here, as JSON (accuracy from 0 to 1)"
    )
    _add_tables(parser)
    _add_tokens(parser)
    options = parser.parse_args(arguments)
    if options.predicted:
        _refuse_given(options, parser, _ONLY_FOR_TOKENS)
        _check_tables(options)
    else:
        _refuse_given(options, parser, _ONLY_FOR_TABLES)
        _check_tokens(options)
    return options


def _add_tables(parser: argparse.ArgumentParser) -> None:
    """Add the options of predicted tables."""
    tables = parser.add_argument_group("predicted tables")
    tables.add_argument(
        "predicted", nargs="*", type=Path, metavar="PREDICTED", help="tables of `predict`"
    )
    tables.add_argument(
        "--model",
        type=Path,
        help="run or model folder, which has the units of the tables and, without --columns, their "
        "columns",
    )
    tables.add_argument(
        "--columns",
        help="columns of the tables, such as source,target,tags,language,- (default: those of "
        "--model; or a heading names them; or guessed)",
    )
    tables.add_argument(
        "--separator",
        action="append",
        default=[],
        metavar="COLUMN=TEXT",
        help='text between symbols, such as "target= " (default: that of --model, or guessed)',
    )


def _add_tokens(parser: argparse.ArgumentParser) -> None:
    """Add the options of files of tokens."""
    tokens = parser.add_argument_group("files of tokens, one word per line")
    tokens.add_argument("--source", type=Path, help="source file of `prepare sigmorphon`")
    tokens.add_argument("--predictions", type=Path, help="one predicted target per line")
    tokens.add_argument(
        "--nbest",
        type=whole(1, 10_000),
        default=1,
        metavar="N",
        help="N predicted targets for each source line",
    )
    tokens.add_argument("--report", type=Path, help="-exactness_report of the predictions")


def _refuse_given(
    options: argparse.Namespace, parser: argparse.ArgumentParser, reasons: Mapping[str, str]
) -> None:
    """Refuse options that the user has given.

    Args:
        options: options of the command line.
        parser: has the defaults; an option with another value was given.
        reasons: the options to refuse, each with the reason.

    Raises:
        UserError: names the first such option.
    """
    for name, reason in reasons.items():
        if getattr(options, name) != parser.get_default(name):
            raise UserError(f"--{name} {reason}")


def _check_tables(options: argparse.Namespace) -> None:
    """Check the options of predicted tables.

    Raises:
        UserError: an option is missing, or excludes another.
    """
    if options.model and options.separator:
        raise UserError("--separator: the model names the separators; leave this option out")
    if not options.reference:
        raise UserError("--reference GOLD is missing, the table with the right targets")


def _check_tokens(options: argparse.Namespace) -> None:
    """Check the options of files of tokens.

    Raises:
        UserError: an option is missing, or names several files.
    """
    required = ("source", "reference", "predictions")
    missing = [f"--{name}" for name in required if not getattr(options, name)]
    if missing:
        raise UserError(
            "the following arguments are required: "
            f"{', '.join(missing)}, or predicted tables; -h explains the arguments"
        )
    for name in ("reference", "against"):
        if len(getattr(options, name)) > 1:
            raise UserError(f"--{name}: name one file of tokens; only tables may be several")


def main(arguments: Sequence[str]) -> int:
    """Print the measures; return the exit status."""
    options = parse_arguments(arguments)
    print(evaluate_tables(options) if options.predicted else evaluate_tokens(options))
    return 0
