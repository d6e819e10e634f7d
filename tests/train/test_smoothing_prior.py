"""The option `label_smoothing_prior` of trainings."""

from pathlib import Path

import pytest
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from tests.toy import write_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_config(
        tmp_path_factory.mktemp("prior"),
        train_steps=4,
        save_checkpoint_steps=2,
        valid_steps=100,
        label_smoothing=0.2,
    )


def trained_bias(config: Path, name: str, prior: str, *more: str) -> Tensor:
    """Train into a folder beside the configuration; return the output layer's bias at the end."""
    run = ["-config", str(config), "-save_model", str(config.parent / name)]
    assert train([*run, "-label_smoothing_prior", prior, *more]) == 0
    return load(config.parent / name / "step_4").model.generator.bias


@pytest.fixture(scope="module")
def unigram_bias(config: Path) -> Tensor:
    return trained_bias(config, "unigram", "unigram")


def test_another_prior_trains_other_weights(config: Path, unigram_bias: Tensor) -> None:
    assert not trained_bias(config, "uniform", "uniform").equal(unigram_bias)


def test_a_resumed_run_has_the_same_prior(config: Path, unigram_bias: Tensor) -> None:
    """Otherwise its weights would be others than those of a run that was not interrupted."""
    checkpoint = str(config.parent / "unigram" / "step_2")
    assert trained_bias(config, "resumed", "unigram", "-train_from", checkpoint).equal(unigram_bias)
