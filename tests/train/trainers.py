"""Trainers of the toy task, and the weights of their models."""

from pathlib import Path

import torch
from torch import Tensor

from onmt_entmax.checkpoint import load, read_training_state
from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.toy import write_config

# A small Transformer all of whose attention has learned alphas.
LEARNED_ALPHAS = {
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
    """Write the toy task with these options; return its configurations."""
    folder.mkdir(exist_ok=True)
    return training_setup(["-config", str(write_config(folder, num_workers=0, **changes))])


def _build_trainer(setup: TrainingSetup, data: TrainingData, model: SparseNMTModel) -> Trainer:
    """Return a trainer in one process, which prints and logs nothing."""
    return Trainer(
        model,
        TrainingBatches(data),
        setup.training,
        evaluate=make_evaluate(data, setup.validation),
        run=RunFolder(Path(setup.run.save_model), setup.model, data.vocabularies, setup.record),
        log=None,
        processes=Processes(),
    )


def trainer_of(folder: Path, **changes: object) -> Trainer:
    """Return a trainer for the toy task.

    Args:
        folder: of the corpora and the run.
        changes: options of `tests.toy.write_config`.
    """
    setup = setup_of(folder, **changes)
    data = TrainingData.read(setup.data, setup.vocabulary)
    torch.manual_seed(1)
    return _build_trainer(setup, data, build_model(setup.model, data.vocabularies))


def resumed_trainer(folder: Path, step: int, **changes: object) -> Trainer:
    """Return the trainer of `trainer_of`, resumed from a checkpoint."""
    setup = setup_of(folder, **changes)
    checkpoint = folder / "run" / f"step_{step}"
    loaded = load(checkpoint)
    data = TrainingData.read(setup.data, setup.vocabulary, loaded.vocabularies)
    trainer = _build_trainer(setup, data, loaded.model)
    trainer.load_state_dict(read_training_state(checkpoint))
    return trainer


def weights_of(model: SparseNMTModel) -> list[Tensor]:
    """Return a copy of a model's weights."""
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_equal(one: list[Tensor], other: list[Tensor]) -> None:
    """Fail unless two models' weights are the same, bit for bit."""
    assert len(one) == len(other)
    assert all(a.equal(b) for a, b in zip(one, other, strict=True))
