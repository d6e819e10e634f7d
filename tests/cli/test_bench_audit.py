"""The benchmark of `audit`: planted errors, and the flags of the baselines' trainings."""

import random
from argparse import Namespace
from pathlib import Path

import pytest

from onmt_entmax.cli import audit, checked_parts
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tools.bench.audit import Counts, audited
from tools.bench.planted_errors import PlantedTable, plant

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


def test_a_list_that_is_empty_has_no_precision_and_no_recall() -> None:
    counts = Counts()
    counts.add([], frozenset({7}))
    assert counts.cells("probability 0") == ["probability 0", "0", "0 of 1", "0 %", "0 %"]


def test_the_forms_of_these_lines_alone_change(planted: PlantedTable) -> None:
    changed = {line for line, row in enumerate(planted.rows, 1) if row.target != "kitabı"}
    assert changed == planted.errors


@pytest.mark.parametrize(
    ("function", "updates", "baseline_flags"),
    [
        ("entmax15", "40", []),
        (
            "softmax",
            "80",
            [
                *("-global_attention_function", "softmax"),
                *("-generator_function", "softmax"),
                *("-attention_warmup_steps", "0"),
            ],
        ),
    ],
)
def test_trainings_get_their_sizes_and_the_baselines_softmax(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    updates: str,
    baseline_flags: list[str],
) -> None:
    calls = []
    monkeypatch.setattr(audit, "audit", lambda options, flags: calls.append((options, flags)))
    sizes = Namespace(model=None, language="x", layers=1, size=16, folds=2)
    audited(tmp_path, function, Namespace(**vars(sizes), updates=40, baseline_updates=80))
    ((options, flags),) = calls
    assert str(options.updates) == updates
    assert flags == [
        *("-layers", "1", "-rnn_size", "16", "-word_vec_size", "16"),
        *baseline_flags,
    ]


def test_the_training_of_a_part_gets_the_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []
    monkeypatch.setattr(checked_parts, "run_command", lambda *words: commands.append(words))
    part = Part(tmp_path, train=ROWS[:9], held_out=ROWS[9:], copies=[1] * len(ROWS[9:]))
    checked_parts.train_and_check(part, INFLECTION, 40, ("-layers", "1"))
    assert commands[0] == ("train", "-config", tmp_path / "train.yaml", "-layers", "1")
