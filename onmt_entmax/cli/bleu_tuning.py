"""`onmt-entmax bleu --tune length_reward`: which length reward gives n-best lists the best BLEU."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.bleu_texts import read_references
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, replaced_with_optional
from onmt_entmax.report.bleu import named_bleu
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.reward_tuning import Rewarded, tune_reward
from onmt_entmax.report.tables import aligned_table

# In BLEU. Another thousand sentences of the same kind would make a larger difference.
_NEAR = 0.5


def tune(options: argparse.Namespace) -> str:
    """Measure n-best lists by length reward; return the table, and write it if asked to.

    Args:
        options: the report as the only system, references, tokeniser, case, and output.

    Raises:
        UserError: the report was made with penalties, or has no n-best lists.
    """
    (report,) = options.system
    references = read_references(options.reference)
    records = list(read_report(report, len(references[0])))
    _refuse_other_reports(report, records)
    name, metric = named_bleu(options.tokenize[0], lowercase=options.lowercase)
    # A file that cannot be written is refused before the tuning.
    with replaced_with_optional([], [options.output]) as (_, (output,)):
        rows = tune_reward(records, references, metric)
        if output is not None:
            content = {"signature": str(metric.get_signature()), "rewards": [*map(vars, rows)]}
            output.write(json_text(content))
    return f"{_table(name, rows)}\n\n{_recommendation(rows)}"


def _refuse_other_reports(report: Path, records: Sequence[dict[str, Any]]) -> None:
    """Refuse a report whose lists cannot be ordered by other length rewards.

    Raises:
        UserError: the report was made with penalties, or has no n-best lists.
    """
    for number, record in enumerate(records, start=1):
        if not _can_be_reordered(record):
            raise UserError(f"{report}:{number}: not a record of `translate` without penalties")
    if max(len(record["hypotheses"]) for record in records) < 2:
        raise UserError(f"{report}: has no n-best lists: translate with -n_best 30")


def _can_be_reordered(record: dict[str, Any]) -> bool:
    """Return whether a record of a search without penalties has all that a length reward needs.

    Records of `combine` count no dropped prefixes. A record without hypotheses needs nothing.
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
        rows: a length reward each.
    """
    lines = [["options of translate", name, "brevity penalty", "proven"]]
    for row in rows:
        measures = f"{row.bleu:.2f}", f"{row.brevity_penalty:.3f}", f"{100 * row.proven:.1f} %"
        lines.append([row.options, *measures])
    return aligned_table(lines)


def _recommendation(rows: Sequence[Rewarded]) -> str:
    """Return the options of the best length reward, and of a near one that proves most."""
    best = max(rows, key=lambda row: row.bleu)
    near = [row for row in rows if row.bleu >= best.bleu - _NEAR]
    most_proven = max(near, key=lambda row: row.proven)
    return f"best: {best.options}\nmost proven within {_NEAR} BLEU of it: {most_proven.options}"
