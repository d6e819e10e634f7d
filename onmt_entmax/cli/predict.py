"""Predict the targets of tables with a trained model.

    onmt-entmax predict run/phones/model words.tsv --output words.out.tsv
    onmt-entmax predict run/2023/model part1/test/*.covered.tst --output predicted

A table has the columns of the model's training; a target may be absent, and is ignored where there
is one. It comes back with the target filled in; order, delimiter, heading and other columns stay.
Other columns are named, such as --columns source,-,tags (- leaves one out). Several tables go into
the folder --output, under their own names; - is the standard input.

The language of a table is its column, --language, or the name of the file, as of training files;
ISO 639 codes of three letters are names too. Rows that cannot be read are told before anything is
predicted; --skip-bad FILE leaves them out, and writes them there.

--details adds four columns at the end, and so do --n_best above 1 and --all:

    rank         of the output, from 1 (--n_best lists several, --all every possible one)
    probability  of the output; of models that are searched apart, a proven lower bound
    certificate  only        no other output has any probability
                 exhaustive  every possible output was found
                 optimal     the first output is the most probable one
                 none        nothing is proven
    warnings     such as symbols that training never saw

--least P leaves out outputs of less probability; the warnings and the summary say how many.

Several models (--ensemble) are averaged. --analogies takes the tables of training: what becomes of
a row's most similar training words of the same tags votes, too, which helps inflection. An output
is then a mixture, and so is its certificate. An interrupted prediction is continued by the same
command: what is done is kept beside the output.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.analogy_tables import analogy_pairs, tell_accuracies
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.checked_tables import check_tables
from onmt_entmax.cli.model_options import add_target_symbols
from onmt_entmax.cli.predict_tables import predict
from onmt_entmax.cli.query_files import table_files
from onmt_entmax.cli.query_tables import with_layout
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.ensembles import loaded_models
from onmt_entmax.files import refuse_one_file, refuse_overwriting, temporary_folder
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.rules import positive, whole
from onmt_entmax.transducer import Transducer


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("tables", nargs="+", type=Path, metavar="TABLE", help="tables of queries; - reads stdin")
    add("--output", type=Path, metavar="TABLE_OR_FOLDER", help="default: the standard output")
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
        help="tables of training, whose words vote by analogy",
    )
    add("--columns", help="such as source,target,tags,language,-; the target may be missing")
    add("--language", help="of all rows")
    size = whole(1, 10_000)
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--n_best", type=size, default=1, help="outputs of a row (default 1)")
    listed.add_argument(
        "--all",
        action="store_true",
        help="list every possible output, within 10,000 decoder steps",
    )
    add(
        "--least",
        type=positive(1),
        default=0.0,
        metavar="P",
        help="least probability of an output (default: all above 0)",
    )
    add(
        "--details",
        action="store_true",
        help="also rank, probability, certificate and warnings, as always with --n_best above 1 "
        "and --all",
    )
    add("--beam_size", type=size, default=5, help="beam size (default 5)")
    add_target_symbols(parser)
    add("--batch_size", type=whole(1, 10**7), default=64, help="queries searched together")
    add(
        "--skip-bad",
        type=Path,
        metavar="FILE",
        help="leave out rows that cannot be read; FILE receives them",
    )
    add(
        "--matmul_dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="of products in LSTMs (default float32)",
    )
    add("--gpu", type=whole(0, 1000), metavar="N", help="number of the GPU (default: CPU)")
    options = parser.parse_args(arguments)
    if options.all or options.n_best > 1 or options.least > 0:
        options.details = True
    return options


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
        device = Processes().device(options.gpu, option="--gpu")
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
            tell_accuracies(transducer.analogies.known)
        tables = [with_layout(file, transducer, columns, options.language) for file in files]
        predict(check_tables(tables, transducer, options.skip_bad), transducer, options)
    return 0
