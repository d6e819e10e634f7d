"""A model folder of release 1.0 still loads and gives the same output."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchTask
from tests.commands import json_lines

DATA = Path(__file__).parent / "data"
EXPECTED = json_lines(DATA / "expected.jsonl")  # the records that release 1.0 wrote

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """The records of the same search today."""
    task = SearchTask(SearchConfig(beam_size=20, n_best=2))
    translator = Translator.from_folders([DATA / "model_1.0"], task)
    lines = (DATA / "source.txt").read_text(encoding="utf-8").splitlines()
    return [answer_record(answer) for answer in translator.answers(lines)]


@pytest.mark.parametrize("key", ["certificate", "finished"])
def test_the_model_has_the_same_certificates(records: list[Record], key: str) -> None:
    assert [record[key] for record in records] == [record[key] for record in EXPECTED]


def test_the_model_has_the_same_outputs(records: list[Record]) -> None:
    def texts(record: Record) -> list[str]:
        return [hypothesis["text"] for hypothesis in record["hypotheses"]]

    assert [*map(texts, records)] == [*map(texts, EXPECTED)]


def test_the_outputs_have_the_same_probabilities(records: list[Record]) -> None:
    def probabilities(record: Record) -> list[float]:
        return [hypothesis["prob"] for hypothesis in record["hypotheses"]]

    expected = [pytest.approx(probabilities(record), rel=1e-4) for record in EXPECTED]
    assert [*map(probabilities, records)] == expected
