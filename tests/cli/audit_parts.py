"""An audit of parts of a table, without the models that it would train."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.strings.tables import Row
from tests.reports import record


class Part(NamedTuple):
    """The rows of which a model is trained, and those that it checks."""

    train: Sequence[Row]
    held_out: Sequence[Row]


def parts_of_audits(monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """Let audits train nothing and find nothing; return the list of the parts that they check."""
    parts: list[Part] = []

    def check_part(
        folder: Path,
        train: Sequence[Row],
        held_out: Sequence[Row],
        *_: object,
    ) -> None:
        parts.append(Part(train, held_out))
        folder.mkdir(parents=True)
        empty = record("lang=x", "none", bound=1.0)
        (folder / "dev.report.jsonl").write_text(f"{empty}\n" * len(held_out))
        (folder / "scores.jsonl").write_text('{"log_prob": -1.0}\n' * len(held_out))

    monkeypatch.setattr(audit, "check_part", check_part)
    return parts
