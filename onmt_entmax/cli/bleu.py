"""Compute BLEU, chrF and TER with sacrebleu, and test differences for significance.

    onmt-entmax bleu run/mt/multi30k/de-en.pred run/mt/multi30k/de-en-softmax.pred \\
        --reference run/mt/multi30k/val.en --tokenize none --output scores.json

Each system and each reference is a file of one sentence a line. The scores and signatures are those
of the `sacrebleu` command. Several systems are compared with the first by sacrebleu's paired
bootstrap test (Koehn 2004). In `35.21 (35.18 +- 0.72, p 0.0120)`, 35.21 is the score, 35.18 its
mean over the bootstrap samples, 0.72 half of the 95 % confidence interval around that mean, and `p`
the probability of so large a difference between systems that do not differ.

--tokenize chooses the tokeniser of BLEU: 13a for plain text, none for the tokenised BLEU of papers
if the files are tokens, onmt for the same of text by OpenNMT's tokeniser (mode aggressive, as
`prepare` splits text), char or ja-mecab for Japanese. Several give a BLEU each.

--detokenize compares the output of a model of Moses' tokens with text: it joins the translations by
Moses' rules and leaves the references as they are. For a model of lowercased tokens:

    onmt-entmax bleu de-en.pred --reference val.en --detokenize en --lowercase

--nbest N reads files of `translate -n_best N`, which have N lines a sentence. The scores are of the
first hypotheses; the columns `best of N` are of the oracle, which takes for each sentence the
hypothesis with the best sentence-level score of that measure.

--tune length_reward reads an -exactness_report of `translate -n_best 30` instead of translations,
orders its lists by score with several length rewards, and prints what to give to `translate`. A
search with the reward may find longer outputs than these lists have: measure it, too.

    onmt-entmax bleu val.report.jsonl --reference val.en --tune length_reward

--report REPORT, of the translation of the first system, prints how many sentences remain, and their
BLEU, if all others are left to a person: by the probability of the output, and by what is proven.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.bleu_scores import scores_record, scores_table
from onmt_entmax.cli.bleu_texts import check_lengths, read_references, read_systems
from onmt_entmax.cli.bleu_tuning import tune
from onmt_entmax.data.detokenize import LANGUAGES, detokenize
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, replaced_with_optional
from onmt_entmax.report.bleu import ONMT, make_metrics, quality_of
from onmt_entmax.report.coverage import Coverage, coverage, coverage_text
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.system_comparison import compare
from onmt_entmax.rules import whole

METRICS = ("bleu", "chrf", "ter")


def run(options: argparse.Namespace) -> str:
    """Measure as the options say; return the table.

    Raises:
        UserError: a file cannot be read, is not what it should be, or would be overwritten.
    """
    refuse_overwriting([*options.system, *options.reference, options.report], [options.output])
    return tune(options) if options.tune else _compare(options)


def _compare(options: argparse.Namespace) -> str:
    """Compare the systems, and write the scores if asked to; return the table."""
    references = read_references(options.reference)
    systems = _systems(options, len(references[0]))
    if "ter" in options.metrics:
        paths = map(str, options.reference)
        check_lengths([*zip(paths, references, strict=True), *systems.items()])
    metrics = make_metrics(options.metrics, options.tokenize, options.lowercase)
    # A file that cannot be written is refused before the comparison.
    with replaced_with_optional([], [options.output]) as (_, (output,)):
        measures = compare(
            list(systems.items()), references, metrics, options.resamples, options.nbest
        )
        content = scores_record(measures, options.detokenize)
        text = scores_table(measures)
        if options.report:
            first_system, *_ = systems.values()
            translations = first_system[:: options.nbest]
            measure, metric = metrics[0]
            curve = _coverage(options.report, translations, references, metric)
            content["coverage"] = [vars(point) for point in curve]
            text += f"\n\n{coverage_text(curve, measure)}"
        if output is not None:
            output.write(json_text(content))
    if options.detokenize:
        text += f"\ntranslations detokenized by Moses' rules ({options.detokenize})"
    return text


def _coverage(
    report: Path,
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    metric: Metric,
) -> list[Coverage]:
    """Return the curve of coverage against the quality of what remains.

    Args:
        report: exactness report of the translations.
        translations: of a system, the best of each sentence.
        references: lines of each reference.
        metric: sacrebleu's measure of the quality.
    """
    records = list(read_report(report, len(references[0])))
    return coverage(records, quality_of(metric, translations, references))


def _systems(options: argparse.Namespace, sentences: int) -> dict[str, list[str]]:
    """Return the lines of each system, by the name of its file.

    Args:
        options: `system`, `nbest` and `detokenize`.
        sentences: lines of the reference.

    Raises:
        UserError: a file cannot be read, or is given twice.
    """
    texts = read_systems(options.system, sentences, options.nbest)
    if options.detokenize:
        texts = [[detokenize(line, options.detokenize) for line in text] for text in texts]
    names = list(map(str, options.system))
    if len(set(names)) < len(names):
        raise UserError("the same system is given twice")
    return dict(zip(names, texts, strict=True))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("system", nargs="+", type=Path, metavar="SYSTEM", help="file of translations")
    add("--reference", nargs="+", type=Path, required=True, metavar="FILE")
    add("--metrics", nargs="+", choices=METRICS, default=list(METRICS), help="default: all")
    tokenizers = [*BLEU.TOKENIZERS, ONMT]
    add("--tokenize", nargs="+", choices=tokenizers, default=["13a"], metavar="NAME")
    add("--lowercase", action="store_true", help="ignore case in BLEU and chrF (TER always does)")
    add("--detokenize", choices=LANGUAGES, help="join Moses' tokens of the systems to text")
    add(
        "--nbest",
        type=whole(1, 10_000),
        default=1,
        metavar="N",
        help="the systems have N lines a sentence",
    )
    add(
        "--resamples",
        type=whole(0, 100_000),
        default=1000,
        metavar="N",
        help="bootstrap samples; 0: compare nothing",
    )
    add("--report", type=Path, metavar="REPORT", help="-exactness_report of the first system")
    add("--tune", choices=["length_reward"], help="the system is a report of n-best lists")
    add("--output", type=Path, metavar="FILE", help="write the scores as JSON here")
    options = parser.parse_args(arguments)
    not_tuned = "nbest", "report", "detokenize", "metrics", "resamples"
    others = any(vars(options)[name] != parser.get_default(name) for name in not_tuned)
    if options.tune and (len(options.system) > 1 or len(options.tokenize) > 1 or others):
        names = ", ".join(f"--{name}" for name in not_tuned)
        parser.error(f"--tune takes one report as SYSTEM, at most one --tokenize, and no {names}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the scores; return the exit status."""
    options = parse_arguments(arguments)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    print(run(options))
    return 0
