"""Label smoothing in a run, with a uniform and a unigram prior."""

from pathlib import Path

from onmt_entmax.cli.train import main as train
from tests.commands import weights
from tests.toy import write_config


def test_the_prior_reaches_the_loss_and_survives_resuming(tmp_path: Path) -> None:
    path = write_config(
        tmp_path, train_steps=4, save_checkpoint_steps=2, valid_steps=100, label_smoothing=0.2
    )
    results = {}
    for prior in ("uniform", "unigram"):
        run = tmp_path / prior
        given = ["-config", str(path), "-save_model", str(run), "-label_smoothing_prior", prior]
        assert train(given) == 0
        results[prior] = weights(run, 4)
    assert set(results["uniform"]) == set(results["unigram"])
    bias = "generator.bias"
    assert not results["uniform"][bias].equal(results["unigram"][bias])
    resumed = tmp_path / "resumed"
    given[3] = str(resumed)
    assert train([*given, "-train_from", str(tmp_path / "unigram" / "step_2")]) == 0
    again = weights(resumed, 4)
    assert all(again[name].equal(tensor) for name, tensor in results["unigram"].items())
