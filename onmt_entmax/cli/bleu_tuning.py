"""`onmt-entmax bleu --tune length_reward`: find the length reward with the best BLEU."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.bleu_texts import read_references
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, replaced_with_optional
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import Record
from onmt_entmax.report.reward_tuning import Rewarded, tune_reward
from onmt_entmax.report.sacrebleu_metrics import named_bleu
from onmt_entmax.report.tables import aligned_table

# Length rewards are about equally good if they differ by less in BLEU: with a thousand other
# sentences of the same kind, BLEU would differ by more.
_NEAR = 0.5


def tune(options: argparse.Namespace) -> str:
    """Measure n-best lists with several length rewards; write the results as JSON with `--output`.

    Args:
        options: options of `bleu`: the report is its only system.

    Returns:
        The text to print.

    Raises:
        UserError: the report was made with penalties, or has no n-best lists.
    """
    (report,) = options.system
    references = read_references(options.reference)
    records = list(read_report(report, len(references[0])))
    _refuse_other_reports(report, records)
    name, metric = named_bleu(options.tokenize[0], lowercase=options.lowercase)
    # Opened first: if the file cannot be written, the error comes before the long tuning.
    with replaced_with_optional([], [options.output]) as (_, (output,)):
        rows = tune_reward(records, references, metric)
        if output is not None:
            content = {"signature": str(metric.get_signature()), "rewards": [*map(vars, rows)]}
            output.write(json_text(content))
    return f"{_table(name, rows)}\n\n{_recommendation(rows)}"


def _refuse_other_reports(report: Path, records: Sequence[Record]) -> None:
    """Refuse a report whose lists cannot be ordered by other length rewards.

    Raises:
        UserError: the report was made with penalties, or has no n-best lists.
    """
    for number, record in enumerate(records, start=1):
        if not _can_be_reordered(record):
            raise UserError(f"{report}:{number}: not a record of `translate` without penalties")
    if max(len(record["hypotheses"]) for record in records) < 2:
        raise UserError(f"{report}: has no n-best lists: translate with -n_best 30")


def _can_be_reordered(record: Record) -> bool:
    """Return whether the hypotheses of a record can be ordered by other length rewards.

    This needs a search without penalties, and the counts of `translate`, which records of `combine`
    do not have. A record without hypotheses needs nothing.
    """
    hypotheses = record["hypotheses"]
    if not hypotheses:
        return True
    has_log_probs = all(isinstance(hypothesis.get("log_prob"), float) for hypothesis in hypotheses)
    has_counts = "dropped" in record and "source_tokens" in record
    return "penalties" not in record and has_counts and has_log_probs


def _table(name: str, rows: Sequence[Rewarded]) -> str:
    """Return the measures of each length reward as a table.

    Args:
        name: name of this BLEU, such as `BLEU 13a`.
        rows: results of each length reward.
    """
    lines = [["options of translate", name, "brevity penalty", "proven"]]
    for row in rows:
        measures = f"{row.bleu:.2f}", f"{row.brevity_penalty:.3f}", f"{100 * row.proven:.1f} %"
        lines.append([row.options, *measures])
    return aligned_table(lines)


def _recommendation(rows: Sequence[Rewarded]) -> str:
    """Return the options of the best length reward, and of the one near it that proves most."""
    best = max(rows, key=lambda row: row.bleu)
    near = [row for row in rows if row.bleu >= best.bleu - _NEAR]
    most_proven = max(near, key=lambda row: row.proven)
    return f"best: {best.options}\nmost proven within {_NEAR} BLEU of it: {most_proven.options}"
