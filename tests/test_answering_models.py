"""Answers of the page of `serve` by several models, which may write in different directions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.errors import UserError
from onmt_entmax.transducer import Prediction, Transducer
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.page_answers import (
    BUDGET,
    LISTED,
    SIZES,
    TASK,
    predicted_outputs,
    recorded_outputs,
    transducer_of,
)
from tests.string_models import PHONES, task_options, write_phones


class TestModelsOfTwoDirections:
    """They cannot write an output together token by token, so whole outputs are averaged."""

    @pytest.fixture
    def folders(self, tmp_path: Path) -> list[Path]:
        return [
            write_phones(tmp_path / "forward", 3, end=4),
            write_phones(tmp_path / "backward", 4, end=4, target_order="right_to_left"),
        ]

    @pytest.fixture
    def expected(self, folders: list[Path]) -> Prediction:
        """All outputs, which are more than an answer lists."""
        prediction = Transducer(folders, n_best=0, budget=BUDGET, **SIZES).predict("ab")
        assert len(prediction.outputs) > LISTED
        return prediction

    @pytest.fixture(params=[1, LISTED], ids=lambda listed: f"{listed} listed")
    def listed(self, request: pytest.FixtureRequest) -> int:
        """How many outputs the answer may list."""
        listed: int = request.param
        return listed

    @pytest.fixture
    def answer(self, folders: list[Path], listed: int) -> dict[str, Any]:
        config = replace(TASK.config, n_best=listed)
        return Answering(folders, replace(TASK, config=config)).answer({"source": "ab"})

    def test_list_as_many_outputs_as_asked_for(
        self, answer: dict[str, Any], expected: Prediction, listed: int
    ) -> None:
        assert recorded_outputs(answer["record"]) == predicted_outputs(expected.outputs[:listed])

    def test_prove_the_same_however_many_are_listed(
        self, answer: dict[str, Any], expected: Prediction
    ) -> None:
        record = answer["record"]
        assert record["finished"] == len(expected.outputs)
        assert record["certificate"] == expected.certificate.level
        assert record["bound"] == expected.certificate.bound

    def test_have_no_pictures(self, answer: dict[str, Any]) -> None:
        assert "no common pictures" in answer["record"]["no_pictures"]
        assert answer["drawing"] is None


def test_models_of_one_vocabulary_have_pictures(tmp_path: Path) -> None:
    folders = [write_phones(tmp_path / str(seed), seed) for seed in (3, 4)]
    answer = Answering(folders, TASK).answer({"source": "ab"})
    expected = transducer_of(folders).predict("ab")
    assert recorded_outputs(answer["record"]) == predicted_outputs(expected.outputs)
    assert answer["drawing"]["source"] == ["a", "b"]


def test_models_of_different_tasks_are_refused(tmp_path: Path) -> None:
    vocabularies = vocabularies_of("abcd", PHONES)
    other = write_model(tmp_path / "other", 3, vocabularies, options=task_options())
    with pytest.raises(UserError, match="different tasks; target"):
        Answering([write_phones(tmp_path / "phones", 3), other], TASK)
