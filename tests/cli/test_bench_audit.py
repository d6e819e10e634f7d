"""The benchmark of `audit`: planted errors, and the flags of the baselines' trainings."""

import random
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit, part_checks
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tools.bench.audit import Counts, audited_by_trainings
from tools.bench.planted_errors import PlantedTable, plant

# --- planted errors ---

ROWS = [Row(number, Query("kitap", ("N",), "x"), "kitabı", ()) for number in range(1, 301)]


@pytest.fixture
def planted() -> PlantedTable:
    return plant(ROWS, random.Random(1))


def test_one_row_in_a_hundred_gets_an_error(planted: PlantedTable) -> None:
    assert len(planted.errors) == 3


def test_a_table_of_few_rows_gets_one_error() -> None:
    assert len(plant(ROWS[:20], random.Random(1)).errors) == 1


def test_forms_without_letters_are_refused() -> None:
    digits = [row._replace(target="1984") for row in ROWS]
    with pytest.raises(UserError, match="no form has a letter"):
        plant(digits, random.Random(1))


def test_only_the_forms_of_planted_lines_change(planted: PlantedTable) -> None:
    changed = {line for line, row in enumerate(planted.rows, 1) if row.target != "kitabı"}
    assert changed == planted.errors


# --- precision and recall ---


def test_a_list_that_is_empty_has_no_precision_and_no_recall() -> None:
    counts = Counts()
    counts.add([], frozenset({7}))
    assert counts.cells("probability 0") == ["probability 0", "0", "0 of 1", "0 %", "0 %"]


# --- flags of the trainings ---

SIZES = ["-layers", "1", "-rnn_size", "16", "-word_vec_size", "16"]
SOFTMAX = [
    "-global_attention_function", "softmax", "-generator_function", "softmax",
    "-attention_warmup_steps", "0",
]  # fmt: skip


class Audit(NamedTuple):
    """How `audit` was called."""

    updates: int
    flags: list[str]


def called_audit(folder: Path, function: str, monkeypatch: pytest.MonkeyPatch) -> Audit:
    """Let the benchmark call `audit` for models with a function; return with what."""
    calls = []
    monkeypatch.setattr(audit, "audit", lambda options, flags: calls.append((options, flags)))
    options = Namespace(model=None, language="x", layers=1, size=16, folds=2)
    options.updates, options.baseline_updates = 40, 80
    audited_by_trainings(folder, function, options)
    ((called, flags),) = calls
    return Audit(int(called.updates), flags)


def test_the_models_get_their_updates_and_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called_audit(tmp_path, "entmax15", monkeypatch) == Audit(40, SIZES)


def test_the_baselines_get_updates_of_their_own_and_softmax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called_audit(tmp_path, "softmax", monkeypatch) == Audit(80, [*SIZES, *SOFTMAX])


def test_the_training_of_a_part_gets_the_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []
    monkeypatch.setattr(part_checks, "run_command", lambda *words: commands.append(words))
    part = Part(tmp_path, train=ROWS[:9], held_out=ROWS[9:], copies=[1] * len(ROWS[9:]))
    part_checks.train_and_check(part, INFLECTION, 40, ("-layers", "1"))
    assert commands[0] == ("train", "-config", tmp_path / "train.yaml", "-layers", "1")
