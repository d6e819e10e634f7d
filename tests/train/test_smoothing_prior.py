"""The prior of label smoothing, by the command."""

from pathlib import Path

from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from tests.toy import write_config


def test_the_prior_reaches_the_loss_and_survives_resuming(tmp_path: Path) -> None:
    path = write_config(
        tmp_path, train_steps=4, save_checkpoint_steps=2, valid_steps=100, label_smoothing=0.2
    )

    def trained_bias(name: str, prior: str, *more: str) -> Tensor:
        """Train into a folder; return the output layer's bias at the end."""
        run = ["-config", str(path), "-save_model", str(tmp_path / name)]
        assert train([*run, "-label_smoothing_prior", prior, *more]) == 0
        return load(tmp_path / name / "step_4").model.generator.bias

    uniform, unigram = trained_bias("uniform", "uniform"), trained_bias("unigram", "unigram")
    assert not uniform.equal(unigram)
    checkpoint = str(tmp_path / "unigram" / "step_2")
    assert trained_bias("resumed", "unigram", "-train_from", checkpoint).equal(unigram)
