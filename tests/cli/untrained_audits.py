"""`onmt-entmax audit` without its slow steps: no model is trained, and none predicts."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.cli.part_results import REPORT, SCORES
from tests.in_process import success
from tests.reports import record


class UntrainedAudit(NamedTuple):
    """An audit that ran without models.

    Attributes:
        parts: the parts of the table, in the order in which they were checked.
        printed: what the command printed.
    """

    parts: list[Part]
    printed: str


def audit_without_models(
    monkeypatch: pytest.MonkeyPatch, arguments: Sequence[object]
) -> UntrainedAudit:
    """Run `audit`, as if each model found no forms and gave a row's own form a probability.

    Args:
        monkeypatch: replaces the trainings and predictions.
        arguments: the arguments of the command.
    """
    parts: list[Part] = []

    def check_part(part: Part, *_: object) -> None:
        parts.append(part)
        part.folder.mkdir(parents=True)
        rows = len(part.held_out)
        # A search that found nothing: all of the probability may be on forms that it did not see.
        nothing_found = record("ab", "none", bound=1.0)
        (part.folder / REPORT).write_text(f"{nothing_found}\n" * rows)
        (part.folder / SCORES).write_text('{"log_prob": -1.0}\n' * rows)

    for step in ("train_and_check", "check_with_model"):
        monkeypatch.setattr(audit, step, check_part)
    return UntrainedAudit(parts, success(audit.main, arguments))
