"""Write an exactness report as one HTML page, which a browser shows without a network.

    onmt-entmax translate -model run/mine -src test.src -output test.out -n_best 10 \\
        -exactness_report test.report.jsonl
    onmt-entmax report -model run/mine -report test.report.jsonl -output test.html

The page lists the sentences with their certificates. For the first -details sentences it draws the
lattice of the reported hypotheses, the possible next tokens and the attention (Peters, Niculae and
Martins 2019, Figures 1, 2 and 5). A larger -n_best in the report gives the lattices more branches.

-reference FILE shows which best outputs are right, and what you gain if you leave less certain ones
to a person: how many outputs remain, and how good they are. It does so for limits on the
probability and for certificates, as `evaluate --report` and `bleu --report` do. The measure is
accuracy, or with -bleu TOKENIZER sacrebleu's BLEU.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.report_drawings import drawings
from onmt_entmax.cli.report_quality import coverage_curve, with_references
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.errors import counted
from onmt_entmax.files import read_aligned, refuse_overwriting, replaced_when_done
from onmt_entmax.report.advice import advice_on
from onmt_entmax.report.counts import CertificateCounts
from onmt_entmax.report.page import write_page
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.sacrebleu_metrics import ONMT
from onmt_entmax.rules import Rule
from onmt_entmax.translator import Translator


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    # Options have one dash, as those of `translate`, or two.
    add = parser.add_argument
    add(
        "-model",
        "--model",
        type=Path,
        nargs="+",
        required=True,
        help="the models that made the report",
    )
    add("-report", "--report", type=Path, required=True, help="exactness report of `translate`")
    add("-output", "--output", type=Path, required=True, help="the HTML file to write")
    add(
        "-details",
        "--details",
        type=Rule(int, 0, 10**9, names=("all",)),
        default=200,
        metavar="N",
        help="draw the first N sentences that have hypotheses; all: draw every one (default 200)",
    )
    add(
        "-transforms",
        "--transforms",
        nargs="*",
        help="the -transforms of `translate`, if you gave any",
    )
    add(
        "-reference",
        "--reference",
        type=Path,
        help="references of the report's sentences, one per line",
    )
    add(
        "-bleu",
        "--bleu",
        choices=[*BLEU.TOKENIZERS, ONMT],
        metavar="TOKENIZER",
        help="measure BLEU with this tokeniser, such as 13a, instead of accuracy",
    )
    add("-title", "--title", help="title of the page (default: name of the report)")
    options = parser.parse_args(arguments)
    if options.bleu and not options.reference:
        parser.error("-bleu: is only read with -reference")
    return options


def main(arguments: Sequence[str]) -> int:
    """Write the page; return the exit status.

    Raises:
        UserError: a file cannot be read or written, or other models made the report.
    """
    options = parse_arguments(arguments)
    refuse_overwriting([options.report, options.reference], [options.output])
    records = list(read_report(options.report))
    curve = None  # needs references
    if options.reference:
        _, references = read_aligned(options.report, options.reference)
        records = with_references(records, references)
        curve = coverage_curve(records, options.bleu)
    translator = Translator.from_folders(
        options.model, transforms=options.transforms, attention=True
    )
    counts = CertificateCounts()
    for record in records:
        counts.add_record(record)
    warnings = [*unknown_warnings(counts.source)]
    warn(*warnings)
    with replaced_when_done([options.output]) as (file,):
        drawn = len(records) if options.details == "all" else options.details
        write_page(
            file,
            title=options.title or options.report.name,
            records=records,
            drawings=drawings(translator, records, drawn),
            notes=[*warnings, *advice_on(counts)],
            curve=curve,
        )
    print(f"{options.output}: {counted(len(records), 'sentence')}")
    return 0
