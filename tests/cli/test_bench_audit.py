"""The benchmark of `audit`: the updates and flags of its trainings."""

from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit, part_checks
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tools.bench.audit import Auditor

SIZES = ["-layers", "1", "-rnn_size", "16", "-word_vec_size", "16"]
SOFTMAX = [
    "-global_attention_function", "softmax", "-generator_function", "softmax",
    "-attention_warmup_steps", "0",
]  # fmt: skip


class AuditCall(NamedTuple):
    """How the benchmark called `audit`.

    Attributes:
        updates: the value of `--updates`.
        flags: further arguments of its trainings.
    """

    updates: int
    flags: list[str]


def audit_call(folder: Path, function: str, monkeypatch: pytest.MonkeyPatch) -> AuditCall:
    """Let the benchmark audit a table, without a training; return its call of `audit`.

    Args:
        folder: folder for the audit.
        function: mapping of output and attention, such as `softmax`.
        monkeypatch: replaces `audit`.
    """
    calls: list[AuditCall] = []

    def record(options: Namespace, flags: list[str]) -> None:
        calls.append(AuditCall(int(options.updates), flags))

    monkeypatch.setattr(audit, "audit", record)
    sizes = {"layers": 1, "size": 16, "folds": 2, "updates": 40, "baseline_updates": 80}
    Auditor(folder, Namespace(model=None, language="x", **sizes)).by_trainings(function)
    (call,) = calls
    return call


def test_models_with_entmax_get_their_updates_and_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit_call(tmp_path, "entmax15", monkeypatch) == AuditCall(40, SIZES)


def test_the_baselines_get_updates_of_their_own_and_softmax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = audit_call(tmp_path, "softmax", monkeypatch)
    assert call == AuditCall(80, [*SIZES, *SOFTMAX])


def test_the_training_of_a_part_gets_the_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []
    monkeypatch.setattr(part_checks, "run_command", lambda *words: commands.append(words))
    rows = [Row(number, Query("kitap", ("N",), "x"), "kitabı", ()) for number in range(1, 11)]
    *train, held_out = rows
    part = Part(tmp_path, train=train, held_out=[held_out], copies=[1])
    part_checks.train_and_check(part, INFLECTION, 40, ("-layers", "1"))
    assert commands[0] == ("train", "-config", tmp_path / "train.yaml", "-layers", "1")
