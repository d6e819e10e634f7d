"""Trainers of the toy task."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from onmt_entmax.checkpoint import RunFolder, load, read_training_state
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.trainer import Trainer
from tests.toy import write_config

LEARNED = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "position_encoding": True,
    "rnn_size": 16,
    "word_vec_size": 16,
    "heads": 2,
    "transformer_ff": 32,
    "global_attention_function": "softmax",
    "encoder_attention_function": "learned",
    "decoder_attention_function": "learned",
    "context_attention_function": "learned_shared",
}


def setup_of(folder: Path, **changes: object) -> TrainingSetup:
    folder.mkdir(exist_ok=True)
    return training_setup(["-config", str(write_config(folder, num_workers=0, **changes))])


def trainer_with(setup: TrainingSetup, data: TrainingData, model: SparseNMTModel) -> Trainer:
    run = RunFolder(Path(setup.run.save_model), setup.model, data.vocabularies, setup.record)
    evaluate = make_evaluate(data, setup.validation)
    return Trainer(model, TrainingBatches(data), setup.training, evaluate, run, None, Processes())


def trainer_of(folder: Path, **changes: object) -> Trainer:
    """Return a trainer for the toy task."""
    setup = setup_of(folder, **changes)
    data = TrainingData(setup.data, setup.vocabulary)
    torch.manual_seed(1)
    return trainer_with(setup, data, build_model(setup.model, data.vocabularies))


def resumed(folder: Path, step: int, **changes: object) -> Trainer:
    """Return the trainer of `trainer_of`, resumed from a checkpoint."""
    setup = setup_of(folder, **changes)
    checkpoint = folder / "run" / f"step_{step}"
    loaded = load(checkpoint)
    data = TrainingData(setup.data, setup.vocabulary, loaded.vocabularies)
    trainer = trainer_with(setup, data, loaded.model)
    trainer.load_state_dict(read_training_state(checkpoint))
    return trainer


def weights(model: SparseNMTModel) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_equal(one: list[Tensor], other: list[Tensor]) -> None:
    assert len(one) == len(other)
    assert all(a.equal(b) for a, b in zip(one, other, strict=True))


def after_each_update(trainer: Trainer, do: Callable[[], object]) -> None:
    trainer.optimizer.register_step_post_hook(lambda *_: do())


def poison(trainer: Trainer, steps: set[int]) -> None:
    """Make the loss of some updates nan."""
    loss = trainer.update.loss

    def poisoned(batch: object) -> object:
        result = loss(batch)
        factor = float("nan") if trainer.state.step + 1 in steps else 1.0
        return result._replace(loss=result.loss * factor)

    trainer.update.loss = poisoned


def measuring(trainer: Trainer, *losses: float) -> list[int]:
    """Make validations return these losses; return the steps of the validations."""
    given, steps = iter(losses), []
    trainer.evaluate = lambda _: steps.append(trainer.state.step) or {"loss": next(given)}
    return steps
