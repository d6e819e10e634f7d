"""The search of a validation: its length limit, and references that it can never find."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchConfig
from onmt_entmax.train.evaluation import make_evaluate
from tests.train.stub_searches import stub_search
from tests.train.trainers import setup_of

LONGEST = 7  # tokens of an output


@pytest.fixture
def setup(tmp_path: Path) -> TrainingSetup:
    """A training whose target vocabulary lacks some tokens of the references."""
    return setup_of(
        tmp_path, selection="exact_match", tgt_vocab_size=4, max_length=LONGEST, rnn_size=8
    )


@pytest.fixture
def data(setup: TrainingSetup) -> TrainingData:
    return TrainingData.read(setup.data, setup.vocabulary)


@torch.no_grad()
def validate(setup: TrainingSetup, data: TrainingData) -> dict[str, float]:
    """Return the measures of a model that was not trained."""
    model = build_model(setup.model, data.vocabularies).eval()
    return make_evaluate(data, setup.validation)(model)


def test_references_with_unknown_tokens_never_match(
    setup: TrainingSetup, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the search finds every reference, as far as the vocabulary has its tokens."""

    def find_references(batch: Batch, _: SearchConfig) -> list[list[int]]:
        rows = batch.target[1:, :, 0].t().tolist()  # without the start symbol
        lengths = batch.target_lengths.tolist()  # with the start symbol and the end symbol
        return [row[: length - 2] for row, length in zip(rows, lengths, strict=True)]

    stub_search(monkeypatch, find_references)
    measures = validate(setup, data)
    lines = Path(setup.data.valid.path_tgt).read_text().splitlines()
    known = [all(token in data.vocabularies.target for token in line.split()) for line in lines]
    assert 0 < sum(known) < len(known)
    assert measures["exact_match"] == pytest.approx(100 * sum(known) / len(known))


def test_unknown_tokens_of_references_are_named_by_a_warning(
    setup: TrainingSetup, data: TrainingData
) -> None:
    warnings: list[str] = []
    make_evaluate(data, setup.validation, warnings.append)
    (warning,) = warnings
    assert warning.startswith("warning: corpus 'valid': ")
    assert "not in the target vocabulary: no output has '" in warning


def test_a_search_has_the_length_limit_of_the_options(
    setup: TrainingSetup, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: set[int] = set()

    def find_nothing(batch: Batch, config: SearchConfig) -> list[list[int]]:
        limits.add(config.max_length)
        return [[] for _ in batch.indices]

    stub_search(monkeypatch, find_nothing)
    validate(setup, data)
    assert limits == {LONGEST}
