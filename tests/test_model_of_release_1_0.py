"""A model folder that release 1.0 wrote still loads, and gives what it gave with that release."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchTask
from tests.commands import json_lines

DATA = Path(__file__).parent / "data"
EXPECTED = json_lines(DATA / "expected.jsonl")  # the report that release 1.0 wrote

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """The records of the same search by this version."""
    task = SearchTask(SearchConfig(beam_size=20, n_best=2))
    translator = Translator.from_folders([DATA / "model_1.0"], task)
    lines = (DATA / "source.txt").read_text(encoding="utf-8").splitlines()
    return [answer_record(answer) for answer in translator.answers(lines)]


@pytest.mark.parametrize("key", ["certificate", "finished"])
def test_certificates_are_the_same(records: list[Record], key: str) -> None:
    assert [record[key] for record in records] == [record[key] for record in EXPECTED]


def texts_of(record: Record) -> list[str]:
    return [hypothesis["text"] for hypothesis in record["hypotheses"]]


def test_outputs_are_the_same(records: list[Record]) -> None:
    assert [*map(texts_of, records)] == [*map(texts_of, EXPECTED)]


def probabilities_of(record: Record) -> list[float]:
    return [hypothesis["prob"] for hypothesis in record["hypotheses"]]


def test_probabilities_are_the_same(records: list[Record]) -> None:
    """They may differ in the last digits of float32."""
    expected = [pytest.approx(probabilities_of(record), rel=1e-4) for record in EXPECTED]
    assert [*map(probabilities_of, records)] == expected
