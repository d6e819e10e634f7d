"""A model folder of release 1.0 still loads and gives the same output."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.search import Budget, SearchTask, Verification, verify
from tests.commands import json_lines

DATA = Path(__file__).parent / "data"


def test_a_model_of_the_first_release_gives_the_same_output() -> None:
    task = SearchTask(SearchConfig(beam_size=20, n_best=2))
    translator = Translator.from_folders([DATA / "model_1.0"], task)
    lines = (DATA / "source.txt").read_text(encoding="utf-8").splitlines()
    expected = json_lines(DATA / "expected.jsonl")
    for answer, before in zip(translator.answers(lines), expected, strict=True):
        now = answer.record()
        assert now["certificate"] == before["certificate"]
        assert now["finished"] == before["finished"]
        assert [h["text"] for h in now["hypotheses"]] == [h["text"] for h in before["hypotheses"]]
        for one, other in zip(now["hypotheses"], before["hypotheses"], strict=True):
            assert one["prob"] == pytest.approx(other["prob"], rel=1e-4)


def test_verification_has_the_budget_of_the_search(monkeypatch) -> None:
    budgets = []

    def spy(*arguments: Any) -> Verification:
        budgets.append(arguments[5])
        return verify(*arguments)

    monkeypatch.setattr("onmt_entmax.translator.verify", spy)
    task = SearchTask(method="exact", budget=Budget(12_345), verify=True)
    translator = Translator.from_folders([DATA / "model_1.0"], task)
    line = (DATA / "source.txt").read_text(encoding="utf-8").splitlines()[0]
    verification = next(translator.answers([line])).verification
    assert verification.agrees
    assert budgets == [Budget(12_345)]
