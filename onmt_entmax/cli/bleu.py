"""Compute BLEU, chrF and TER with sacrebleu, and test differences for significance.

    onmt-entmax bleu run/mt/multi30k/de-en.pred run/mt/multi30k/de-en-softmax.pred \\
        --reference run/mt/multi30k/val.en --tokenize none --output scores.json

Each system and each reference is a file of one sentence a line. The scores and signatures are those
of the `sacrebleu` command. Several systems are compared with the first by sacrebleu's paired
bootstrap test (Koehn 2004): `p` is the probability of so large a difference between systems that do
not differ, and `+-` half of the 95 % confidence interval.

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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.data.detokenize import LANGUAGES, detokenize
from onmt_entmax.data.parallel import read_lines
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, replaced_when_done
from onmt_entmax.report.bleu import (
    ONMT,
    Measure,
    SystemScore,
    compare,
    make_metrics,
    quality_of,
    tune_reward,
)
from onmt_entmax.report.coverage import coverage, coverage_text
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole

METRICS = ("bleu", "chrf", "ter")
NEAR = 0.5  # BLEU; the choice of a thousand sentences makes a larger difference by chance
SLOW = 500  # words of a line for which TER takes minutes
MOST = 5_000  # words of a line for which TER takes gigabytes


def table(systems: Sequence[str], measures: Sequence[Measure]) -> str:
    """Return a table with a row for each system, and the signatures."""
    heading = ["system", *(measure.name for measure in measures)]
    rows = [
        [name, *(_cell(measure.scores[number]) for measure in measures)]
        for number, name in enumerate(systems)
    ]
    aligned = aligned_table([heading, *rows], left=len(heading))
    signatures = [f"{measure.name}: {measure.signature}" for measure in measures]
    return "\n".join([aligned, "", *signatures])


def _cell(score: SystemScore) -> str:
    """Return a score with its confidence interval and p-value, if it has them."""
    text = f"{score.value:.2f}"
    if score.half_width is not None:
        text += f" +- {score.half_width:.2f}"
    if score.p_value is not None:
        text += f" (p {score.p_value:.4f})"
    return text


def as_json(
    systems: Sequence[str], measures: Sequence[Measure], detokenized: str | None
) -> dict[str, Any]:
    """Return the content of the JSON file: scores by system and measure, and signatures."""
    content: dict[str, Any] = {"detokenized": detokenized} if detokenized else {}
    content["systems"] = {
        name: {measure.name: _known_fields(measure.scores[number]) for measure in measures}
        for number, name in enumerate(systems)
    }
    content["signatures"] = {measure.name: measure.signature for measure in measures}
    return content


def _known_fields(score: SystemScore) -> dict[str, float]:
    return {name: value for name, value in vars(score).items() if value is not None}


def read_texts(
    paths: Sequence[Path], sentences: int | None = None, nbest: int = 1
) -> list[list[str]]:
    """Return the lines of files of equal length, without trailing white space.

    Args:
        paths: of the files.
        sentences: lines of the reference; None: as many as the first file has.
        nbest: lines for each of them.

    Raises:
        UserError: one cannot be read, is empty or a report, or has another number of lines.
    """
    texts = []
    for path in paths:
        text = [line.rstrip() for line in read_lines(path)]
        sentences = sentences or len(text)
        if not text:
            raise UserError(f"{path}: the file is empty")
        if text[0].startswith('{"') and '"source": ' in text[0]:
            raise UserError(
                f"{path}: an -exactness_report, not text; name the file that `translate` wrote to "
                "-output (only --tune and --report read a report)"
            )
        if len(text) != sentences * nbest:
            if nbest > 1:
                why = f"{nbest} for each of {counted(sentences, 'line')} of the reference"
            else:
                why = "as in the reference"
                if len(text) % sentences == 0:
                    why += f" (n-best lists? --nbest {len(text) // sentences})"
            raise UserError(
                f"{path}: has {counted(len(text), 'line')}, expected {sentences * nbest}, {why}"
            )
        texts.append(text)
    return texts


def check_lengths(texts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Check that TER ends: its time and memory grow with the square of a line's words.

    Args:
        texts: names and lines of systems and references.

    Raises:
        UserError: a line is too long.
    """
    for name, lines in texts:
        counts = [len(line.split()) for line in lines]
        longest = max(counts)
        where = f"{name}: line {1 + counts.index(longest)} has {counted(longest, 'word')}"
        advice = "--metrics bleu chrf leaves TER out"
        if longest > MOST:
            raise UserError(f"{where}, and TER takes at most {MOST:,}; {advice}")
        if longest > SLOW:
            warn(f"{where}, for which TER takes minutes; {advice}")


def tune(options: argparse.Namespace) -> str:
    """Measure n-best lists by length reward; return the table.

    Raises:
        UserError: the report was made with penalties, or has no n-best lists.
    """
    (report,) = options.system
    references = read_texts(options.reference)
    records = list(read_report(report, len(references[0])))
    for number, record in enumerate(records, start=1):
        if not _can_be_reordered(record):
            raise UserError(f"{report}:{number}: not a record of `translate` without penalties")
    if max(len(record["hypotheses"]) for record in records) < 2:
        raise UserError(f"{report}: has no n-best lists: translate with -n_best 30")
    ((name, metric),) = make_metrics(["bleu"], options.tokenize[:1], options.lowercase)
    with replaced_when_done([options.output] if options.output else []) as files:
        rows = tune_reward(records, references, metric)
        for file in files:
            content = {"signature": str(metric.get_signature()), "rewards": [*map(vars, rows)]}
            file.write(json_text(content))
    lines = [["options of translate", name, "brevity penalty", "proven"]]
    for row in rows:
        measures = f"{row.bleu:.2f}", f"{row.brevity_penalty:.3f}", f"{100 * row.proven:.1f} %"
        lines.append([row.options, *measures])
    best = max(rows, key=lambda row: row.bleu)
    near = [row for row in rows if row.bleu >= best.bleu - NEAR]
    most_proven = max(near, key=lambda row: row.proven)
    return (
        f"{aligned_table(lines)}\n\nbest: {best.options}\n"
        f"most proven within {NEAR} BLEU of it: {most_proven.options}"
    )


def _can_be_reordered(record: dict[str, Any]) -> bool:
    """Tell whether a record has all that a length reward needs: one of a search without penalties.

    Records of `combine` count no dropped prefixes. A record without hypotheses needs nothing.
    """
    hypotheses = record["hypotheses"]
    if not hypotheses:
        return True
    has_log_probs = all(isinstance(hypothesis.get("log_prob"), float) for hypothesis in hypotheses)
    return "penalties" not in record and "dropped" in record and has_log_probs


def run(options: argparse.Namespace) -> str:
    """Measure as the options say; return the table."""
    refuse_overwriting([*options.system, *options.reference, options.report], [options.output])
    if options.tune:
        return tune(options)
    references = read_texts(options.reference)
    texts = read_texts(options.system, len(references[0]), options.nbest)
    if options.detokenize:
        texts = [[detokenize(line, options.detokenize) for line in text] for text in texts]
    names = [str(path) for path in options.system]
    if len(set(names)) < len(names):
        raise UserError("the same system is given twice")
    if "ter" in options.metrics:
        paths = map(str, [*options.reference, *options.system])
        check_lengths(zip(paths, [*references, *texts], strict=True))
    metrics = make_metrics(options.metrics, options.tokenize, options.lowercase)
    systems = list(zip(names, texts, strict=True))
    with replaced_when_done([options.output] if options.output else []) as files:
        measures = compare(systems, references, metrics, options.resamples, options.nbest)
        content = as_json(names, measures, options.detokenize)
        text = table(names, measures)
        if options.report:
            records = list(read_report(options.report, len(references[0])))
            name, metric = metrics[0]
            first = texts[0][:: options.nbest]
            curve = coverage(records, quality_of(metric, first, references))
            content["coverage"] = [vars(point) for point in curve]
            text += "\n\n" + coverage_text(curve, name)
        for file in files:
            file.write(json_text(content))
    if options.detokenize:
        text += f"\ntranslations detokenized by Moses' rules ({options.detokenize})"
    return text


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
    unread = "nbest", "report", "detokenize", "metrics", "resamples"
    others = [name for name in unread if vars(options)[name] != parser.get_default(name)]
    if options.tune and (len(options.system) > 1 or len(options.tokenize) > 1 or others):
        names = ", ".join(f"--{name}" for name in unread)
        parser.error(f"--tune takes one report as SYSTEM, at most one --tokenize, and no {names}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the scores; return the exit status."""
    options = parse_arguments(arguments)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    print(run(options))
    return 0
