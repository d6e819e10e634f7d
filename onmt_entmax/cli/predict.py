"""Predict the targets of tables with a trained model.

    onmt-entmax predict run/phones/model words.tsv --output words.out.tsv
    onmt-entmax predict run/2023/model part1/test/*.covered.tst --output predicted

A table has the columns of the training tables; its targets may be missing, and are ignored if they
are there. The output is the same table with predicted targets: order, delimiter, heading and other
columns stay. If a table has other columns, --columns names them, such as source,-,tags (- leaves
one out). Several tables are written to the folder --output, under their own names. The path - is
the standard input.

The language of a table is in a column, or --language names it, or it is the name of the file, as
for training tables. An ISO 639 code of three letters names a language, too. Rows that cannot be
read are reported before anything is predicted; --skip-bad FILE leaves them out, and writes them to
FILE.

--details adds four columns at the end, and so do --n_best above 1, --all and --least:

    rank         of the output, from 1 (--n_best lists several, --all every possible one)
    probability  of the output; a lower bound with --analogies, or if models are searched separately
    certificate  only        no other output has any probability
                 exhaustive  every possible output was found
                 optimal     the first output is the most probable one
                 none        nothing is proven
    warnings     such as symbols that training never saw

--least P leaves out outputs with a lower probability; warnings and the summary say how many.

Several models (--ensemble) are averaged. Those of different vocabularies or directions are searched
separately.

--analogies takes the training tables, which makes inflections better: the training words that are
most like a row's word, and have its tags, vote on its target. Probabilities and certificates are
then about the mixture of model and votes. If the name of such a table is a language, it replaces
--language for this table.

If a prediction is interrupted, the same command continues it: finished rows are kept beside the
output.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.analogy_tables import analogy_pairs, print_accuracies
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.checked_tables import check_tables
from onmt_entmax.cli.model_options import add_target_symbols
from onmt_entmax.cli.predict_tables import predict
from onmt_entmax.cli.query_files import table_files
from onmt_entmax.cli.query_tables import with_layout
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.ensembles import loaded_models
from onmt_entmax.files import refuse_one_file, refuse_overwriting, temporary_folder
from onmt_entmax.parallel.devices import choose_device
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.rules import positive, whole
from onmt_entmax.transducer import Transducer

_SIZE = whole(1, 10_000)  # values of --beam_size and --n_best


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; some options imply `--details`."""
    parser = argument_parser(__doc__)
    _add_tables(parser)
    _add_outputs(parser)
    _add_search(parser)
    options = parser.parse_args(arguments)
    if options.all or options.n_best > 1 or options.least > 0:
        options.details = True
    return options


def _add_tables(parser: argparse.ArgumentParser) -> None:
    """Declare the options of models, tables and outputs."""
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("tables", nargs="+", type=Path, metavar="TABLE", help="tables of queries; - reads stdin")
    add(
        "--output",
        type=Path,
        metavar="TABLE_OR_FOLDER",
        help="file to write, or folder for several tables (default: standard output)",
    )
    add(
        "--ensemble",
        action="append",
        type=Path,
        default=[],
        metavar="MODEL",
        help="a further model; repeat for several",
    )
    add(
        "--analogies",
        nargs="+",
        type=Path,
        default=[],
        metavar="TABLE",
        help="training tables, whose words vote by analogy",
    )
    add(
        "--columns",
        help="columns of the tables, such as source,target,tags,language,-; the target may be "
        "missing (default: those of training, unless a heading names others)",
    )
    add("--language", help="language of all rows")
    add(
        "--skip-bad",
        type=Path,
        metavar="FILE",
        help="leave out rows that cannot be read, and write them to FILE",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose the outputs of a row, and their columns."""
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--n_best", type=_SIZE, default=1, help="outputs of a row (default 1)")
    listed.add_argument(
        "--all",
        action="store_true",
        help="list every possible output, within 10,000 decoder steps",
    )
    parser.add_argument(
        "--least",
        type=positive(1),
        default=0.0,
        metavar="P",
        help="least probability of an output (default: all above 0)",
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="add columns of rank, probability, certificate and warnings, as --n_best above 1, "
        "--all and --least do",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the search."""
    add = parser.add_argument
    add("--beam_size", type=_SIZE, default=5, help="beam size (default 5)")
    add_target_symbols(parser)
    add(
        "--batch_size",
        type=whole(1, 10**7),
        default=64,
        help="queries searched together (default 64)",
    )
    add(
        "--matmul_dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="type of products in LSTMs (default float32)",
    )
    add("--gpu", type=whole(0, 1000), metavar="N", help="number of the GPU (default: CPU)")


def main(arguments: Sequence[str]) -> int:
    """Predict the tables; return the exit status."""
    options = parse_arguments(arguments)
    columns = checked_columns(options.columns or "")
    with temporary_folder() as folder:
        files = table_files(options.tables, options.output, folder / "table")
        outputs = [file.output for file in files]
        inputs = [*(file.path for file in files), *options.analogies]
        refuse_overwriting(inputs, [*outputs, options.skip_bad])
        refuse_one_file(options.skip_bad, outputs)
        transducer = _transducer(options)
        tables = [with_layout(file, transducer, columns, options.language) for file in files]
        predict(check_tables(tables, transducer, options.skip_bad), transducer, options)
    return 0


def _transducer(options: argparse.Namespace) -> Transducer:
    """Load the models and the tables of analogies; print how often analogies are right.

    Raises:
        UserError: a model or table cannot be loaded, or does not fit the others or the options.
    """
    device = choose_device(Processes(), options.gpu, "--gpu")
    models = loaded_models([options.model, *options.ensemble], device)
    transducer = Transducer(
        models,
        n_best=0 if options.all else options.n_best,
        beam_size=options.beam_size,
        target_symbols=options.target_symbols,
        matmul_dtype=options.matmul_dtype,
        analogies=analogy_pairs(options.analogies, models, options.language),
    )
    if transducer.analogies is not None:
        print_accuracies(transducer.analogies.known)
    return transducer
