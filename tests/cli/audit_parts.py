"""An audit of parts of a table, without the models that it would train."""

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.cli.audit_parts import Part
from tests.reports import record


def parts_of_audits(monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """Let audits train nothing and find nothing; return the list of the parts that they check."""
    parts: list[Part] = []

    def check_part(part: Part, *_: object) -> None:
        parts.append(part)
        part.folder.mkdir(parents=True)
        rows = len(part.held_out)
        empty = record("lang=x", "none", bound=1.0)
        (part.folder / "dev.report.jsonl").write_text(f"{empty}\n" * rows)
        (part.folder / "scores.jsonl").write_text('{"log_prob": -1.0}\n' * rows)

    for function in ("train_and_check", "check_with_model"):
        monkeypatch.setattr(audit, function, check_part)
    return parts
