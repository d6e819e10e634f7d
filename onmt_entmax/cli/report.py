"""Write an exactness report as one HTML page, which needs no network and nothing installed.

    onmt-entmax translate -model run/mine -src test.src -output test.out -n_best 10 \\
        -exactness_report test.report.jsonl
    onmt-entmax report -model run/mine -report test.report.jsonl -output test.html

The page lists the sentences with their certificates. For the first -details sentences it draws the
lattice of the reported hypotheses, the possible next tokens and the attention (Peters, Niculae and
Martins 2019, Figures 1, 2 and 5). A larger -n_best in the report gives the lattices more branches.

-reference FILE shows which best outputs are right, and the quality of those that are kept if others
are left to a person, by probability and by certificate (as `evaluate --report` and `bleu --report`
print it): accuracy, or with -bleu TOKENIZER sacrebleu's BLEU.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU
from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_aligned, refuse_overwriting, replaced_when_done
from onmt_entmax.pictures import lattice_of, picture
from onmt_entmax.report.bleu import ONMT, make_metrics, quality_of
from onmt_entmax.report.counts import CertificateCounts
from onmt_entmax.report.coverage import coverage
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.page import write_page
from onmt_entmax.report.reading import count_record, read_report
from onmt_entmax.report.records import output_of
from onmt_entmax.rules import Rule
from onmt_entmax.translator import Translator


def draw(translator: Translator, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the drawing of a record, or None if its probabilities are not those of the models."""
    reader, vocabulary = translator.reader, translator.vocabularies.target
    source = reader.encode(reader.preprocess(record["source"])[0])
    # A report has the tokens where they differ from the text.
    targets = [
        hypothesis.get("tokens", hypothesis["text"]).split() for hypothesis in record["hypotheses"]
    ]
    outputs = [
        tuple(vocabulary.encode(reader.target_of(source.words, target))) for target in targets
    ]
    if not source.words or len(set(outputs)) < len(outputs):
        return None
    lattice = lattice_of(translator, source, outputs)
    log_probs = lattice.log_probs()
    for number, hypothesis in enumerate(record["hypotheses"]):
        if not _are_alike(hypothesis["prob"], log_probs[number]):
            return None
    return picture(translator, source, lattice)


def _are_alike(prob: float, log_prob: float) -> bool:
    """Tell whether a probability of a report and one of the models differ by rounding alone.

    Rounding differs between batches by less than 1e-3 in a log-probability, except for tokens at
    the edge of the support, whose probabilities differ by less than 1e-6. A nan is not alike.
    """
    reported = math.log(max(prob, sys.float_info.min))
    computed = max(log_prob, math.log(sys.float_info.min))
    difference = abs(math.exp(computed) - math.exp(reported))
    return abs(computed - reported) <= 1e-3 or difference <= 1e-6


def drawings(
    translator: Translator, records: Sequence[dict[str, Any]], wanted: int
) -> Iterator[tuple[int, Any]]:
    """Yield drawings of the first `wanted` records that have hypotheses, with their positions.

    Raises:
        UserError: none of them could be drawn.
    """
    positions = [i for i, record in enumerate(records) if record["hypotheses"]][:wanted]
    left_out = 0
    hidden = None if positions else True  # None: hidden unless the standard error is a terminal
    for position in tqdm(positions, desc="pictures", unit="sentence", disable=hidden):
        content = draw(translator, records[position])
        if content is None:
            left_out += 1
        else:
            yield position, content
    reason = (
        "this model gives their hypotheses other probabilities than the report says "
        "(is it the report's model, with its -transforms?)"
    )
    if positions and left_out == len(positions):
        raise UserError(f"no sentence can be drawn: {reason}")
    if left_out:
        warn(f"no pictures of {counted(left_out, 'sentence')}: {reason}")


def judge(
    records: Sequence[dict[str, Any]], references: Sequence[str], tokenizer: str | None
) -> dict[str, Any]:
    """Add to each record its `reference`, and whether its best output is `right`.

    Args:
        records: of the report.
        references: as many.
        tokenizer: of sacrebleu, to measure BLEU; None measures accuracy.

    Returns:
        The curve of coverage for `write_page`.
    """
    outputs = [output_of(record)[0] for record in records]
    for record, output, reference in zip(records, outputs, references, strict=True):
        record["reference"] = reference
        record["right"] = is_right(reference, output)
    if tokenizer:
        ((measure, metric),) = make_metrics(["bleu"], [tokenizer], lowercase=False)
        quality = quality_of(metric, outputs, [references])
    else:
        measure = "Accuracy (%)"

        def quality(kept: Sequence[int]) -> float:
            return 100 * sum(records[n]["right"] for n in kept) / len(kept)

    return {"measure": measure, "points": [vars(point) for point in coverage(records, quality)]}


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)

    def add(name: str, **keywords: Any) -> None:
        parser.add_argument(name, f"-{name}", **keywords)

    add("-model", type=Path, nargs="+", required=True, help="the models that made the report")
    add("-report", type=Path, required=True, help="exactness report of `translate`")
    add("-output", type=Path, required=True, help="the HTML file to write")
    add(
        "-details", type=Rule(int, 0, 10**9, names=("all",)), default=200, metavar="N",
        help="draw pictures of the first N sentences with hypotheses, or of all (default 200)",
    )  # fmt: skip
    add("-transforms", nargs="*", help="the -transforms of `translate`")
    add("-reference", type=Path, help="references of the report's sentences, a line each")
    add(
        "-bleu",
        choices=[*BLEU.TOKENIZERS, ONMT],
        metavar="TOKENIZER",
        help="measure BLEU of the references with this tokeniser, such as 13a, not accuracy",
    )
    add("-title", help="title of the page (default: name of the report)")
    options = parser.parse_args(arguments)
    if options.bleu and not options.reference:
        parser.error("-bleu: is only read with -reference")
    return options


def main(arguments: Sequence[str]) -> int:
    """Write the page; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.report, options.reference], [options.output])
    records = list(read_report(options.report))
    curve = None
    if options.reference:
        _, references = read_aligned(options.report, options.reference)
        curve = judge(records, references, options.bleu)
    translator = Translator.from_folders(
        options.model, transforms=options.transforms, attention=True
    )
    counts = CertificateCounts()
    for record in records:
        count_record(counts, record)
    warnings = counts.source.warnings()
    warn(*warnings)
    notes = [*warnings, *counts.advice()]
    with replaced_when_done([options.output]) as (file,):
        wanted = len(records) if options.details == "all" else options.details
        pictures = drawings(translator, records, wanted)
        write_page(file, options.title or options.report.name, records, pictures, notes, curve)
    print(f"{options.output}: {counted(len(records), 'sentence')}")
    return 0
