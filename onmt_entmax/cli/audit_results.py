"""Make the result files of `audit`, and the summary that it prints.

The docstring of `audit.py` describes the files for users.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, script_lines
from onmt_entmax.errors import counted

_SUSPECTS = "suspects.tsv"
_VARIANTS = "variants.tsv"
_SCRIPTS = "scripts.tsv"
_ASK = "ask.tsv"
RESULTS = (_SUSPECTS, _VARIANTS, _SCRIPTS, _ASK)
"""Names of all result files"""


def listed_rows(checked: Sequence[AuditedRow], ask: int | None) -> dict[str, list[str]]:
    """Return the lines of each result file, by the file's name.

    Args:
        checked: all rows of the table.
        ask: number of the least certain rows that `ask.tsv` lists; None: there is no `ask.tsv`.
    """
    suspects, variants = excluded_rows(checked)
    listed = {
        _SUSPECTS: [audited.line() for audited in suspects],
        _VARIANTS: [audited.line() for audited in variants],
        _SCRIPTS: script_lines(checked),
    }
    if ask:
        uncertain = sorted(checked, key=lambda audited: audited.certainty)[:ask]
        listed[_ASK] = [audited.line() for audited in uncertain]
    return listed


def summary_lines(out: Path, listed: Mapping[str, Sequence[str]], rows: int) -> Iterator[str]:
    """Yield a line about the suspects, and one about each other file that lists rows.

    Args:
        out: folder of the files.
        listed: lines of each file, by the file's name.
        rows: number of rows of the table.
    """
    counts = {name: len(lines) for name, lines in listed.items()}
    all_rows = counted(rows, "row")
    yield f"{out / _SUSPECTS}: {counts[_SUSPECTS]:,} of {all_rows} are excluded"
    if counts[_VARIANTS]:
        yield (
            f"{out / _VARIANTS}: {counts[_VARIANTS]:,} more, whose cells have the model's best "
            "form too"
        )
    if counts[_SCRIPTS]:
        yield f"{out / _SCRIPTS}: {counts[_SCRIPTS]:,} of {all_rows} mix scripts"
    if _ASK in counts:
        yield f"{out / _ASK}: the {counted(counts[_ASK], 'row')} with the least certain predictions"
