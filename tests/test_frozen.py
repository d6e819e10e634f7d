"""A model folder of release 1.0 still loads and gives the same output."""

from pathlib import Path

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchTask
from tests.commands import json_lines

DATA = Path(__file__).parent / "data"


def test_a_model_of_the_first_release_gives_the_same_output() -> None:
    task = SearchTask(SearchConfig(beam_size=20, n_best=2))
    translator = Translator.from_folders([DATA / "model_1.0"], task)
    lines = (DATA / "source.txt").read_text(encoding="utf-8").splitlines()
    expected = json_lines(DATA / "expected.jsonl")
    for answer, of_release in zip(translator.answers(lines), expected, strict=True):
        record = answer_record(answer)
        assert record["certificate"] == of_release["certificate"]
        assert record["finished"] == of_release["finished"]
        for output, before in zip(record["hypotheses"], of_release["hypotheses"], strict=True):
            assert output["text"] == before["text"]
            assert output["prob"] == pytest.approx(before["prob"], rel=1e-4)
