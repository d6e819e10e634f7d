"""Trainings with `calibrate`: the saved output layer is multiplied, and nothing else changes."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import UserError
from onmt_entmax.exhaustion import TooLargeError
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train import calibration
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.trainer import Trainer
from tests.train.trainers import assert_equal, resumed_trainer, setup_of, trainer_of, weights_of


def trained(folder: Path, **changes: object) -> Trainer:
    """Train twelve updates of the toy task, with a validation after every four."""
    run = trainer_of(folder, train_steps=12, valid_steps=4, **changes)
    run.train()
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calibrated")


@pytest.fixture(scope="module")
def run(folder: Path) -> Trainer:
    """A training with calibration, which has ended."""
    return trained(folder, calibrate=True)


@pytest.fixture
def saved(folder: Path, run: Trainer) -> SparseNMTModel:
    """The model of its last checkpoint."""
    return load(folder / "run" / f"step_{run.state.counters.step}").model


@torch.no_grad()
def measures(model: SparseNMTModel, folder: Path, **changes: object) -> dict[str, float]:
    """Return the measures of a validation of a model, by these options."""
    setup = setup_of(folder, **changes)
    data = TrainingData.read(setup.data, setup.vocabulary)
    return make_evaluate(data, setup.validation)(model.eval())


def test_the_output_is_saved_multiplied(run: Trainer, saved: SparseNMTModel) -> None:
    factor = run.state.counters.output_factor
    assert factor != 1
    output = run.model.generator
    torch.testing.assert_close(saved.generator.weight, output.weight * factor)
    torch.testing.assert_close(saved.generator.bias, output.bias * factor)


def test_all_other_weights_are_saved_as_they_are(run: Trainer, saved: SparseNMTModel) -> None:
    of_run, of_saved = run.model.state_dict(), saved.state_dict()
    others = [name for name in of_run if not name.startswith("generator")]
    assert_equal([of_run[name] for name in others], [of_saved[name] for name in others])


def test_training_goes_on_as_without_calibration(tmp_path: Path, run: Trainer) -> None:
    assert_equal(weights_of(run.model), weights_of(trained(tmp_path, calibrate=False).model))


def test_measures_are_those_of_the_saved_model(
    tmp_path: Path, run: Trainer, saved: SparseNMTModel
) -> None:
    without = measures(saved, tmp_path, calibrate=False)
    assert without["loss"] == pytest.approx(run.state.selection.best, rel=1e-5)


def test_the_saved_model_needs_no_calibration(tmp_path: Path, saved: SparseNMTModel) -> None:
    again = measures(saved, tmp_path, calibrate=True)
    assert again["output_factor"] == pytest.approx(1, rel=0.01)


def test_an_average_of_weights_is_saved_multiplied(tmp_path: Path) -> None:
    run = trained(tmp_path, calibrate=True, average_decay=0.3)
    saved = load(tmp_path / "run" / f"step_{run.state.counters.step}").model
    with run.state.average.applied():
        expected = run.model.generator.weight * run.state.counters.output_factor
    torch.testing.assert_close(saved.generator.weight, expected)


def test_the_factor_is_computed_from_a_limited_number_of_scores(
    tmp_path: Path, run: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is a fifth of the scores that are used without it.

    It counts those at padding, too, so that less than a fifth is used, here more than a tenth.
    """
    rows: list[int] = []

    def count(scores: Tensor, targets: Tensor, alpha: float) -> float:
        assert len(scores) == len(targets)
        rows.append(len(scores))
        return 1.0

    monkeypatch.setattr(calibration, "calibrating_factor", count)
    measures(run.model, tmp_path, calibrate=True)
    most = rows[0] * len(run.model.generator.weight) // 5
    monkeypatch.setattr(calibration, "_MOST_SCORES", most)
    measures(run.model, tmp_path, calibrate=True)
    assert rows[0] / 10 < rows[1] <= rows[0] / 5


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """A folder with a run that ended with an extra validation, at step 6."""
    run = trainer_of(tmp_path, train_steps=6, valid_steps=100, calibrate=True)
    run.train()
    assert run.state.counters.output_factor != 1
    return tmp_path


def test_between_validations_a_resumed_run_saves_what_an_uninterrupted_one_does(
    tmp_path: Path, ended: Path
) -> None:
    changes = {"train_steps": 12, "valid_steps": 100, "save_checkpoint_steps": 9, "calibrate": True}
    trainer_of(tmp_path / "whole", **changes).train()
    resumed_trainer(ended, 6, **changes).train()
    whole = load(tmp_path / "whole" / "run" / "step_9").model
    resumed = load(ended / "run" / "step_9").model
    assert_equal(weights_of(resumed), weights_of(whole))


def test_a_run_that_goes_on_without_a_development_set_is_not_calibrated(ended: Path) -> None:
    run = resumed_trainer(ended, 6, train_steps=12)
    run.validation = None
    run.train()
    saved = load(ended / "run" / "step_12").model
    assert_equal(weights_of(saved), weights_of(run.model))


def test_a_batch_that_does_not_fit_is_named(
    tmp_path: Path, run: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(batch: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run.model, "hidden_states", exhausted)
    with pytest.raises(TooLargeError, match="make valid_batch_size smaller"):
        measures(run.model, tmp_path, calibrate=True)


def test_shared_embeddings_are_not_multiplied(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="calibrate: would also multiply the target embeddings"):
        setup_of(tmp_path, calibrate=True, share_decoder_embeddings=True, word_vec_size=32)
