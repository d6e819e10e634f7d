"""`train.py`, end to end: the files of a run, its folder, and early stopping."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from onmt_entmax.checkpoint import best_step, checkpoint_steps
from onmt_entmax.cli import train
from tests.commands import fail, json_lines
from tests.in_process import refusal, success
from tests.toy import write_config

# --- a finished run ---


def validations(run: Path) -> list[dict[str, Any]]:
    """Return the rows of the log that validations wrote."""
    return [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "valid"]


def test_validations_are_logged(toy_run: Path) -> None:
    assert [row["step"] for row in validations(toy_run)] == [100, 200, 300, 400]


def test_a_validation_logs_the_mean_size_of_the_support(toy_run: Path) -> None:
    """After training, few of the ten tokens of the vocabulary have a probability, on average."""
    *_, last = validations(toy_run)
    assert 1 <= last["support"] < 4


def test_the_best_checkpoint_is_that_of_the_best_validation(toy_run: Path) -> None:
    best = json.loads((toy_run / "best.json").read_text())
    assert best["metric"] == "exact_match"
    assert best["value"] == max(row["exact_match"] for row in validations(toy_run))


def test_the_best_checkpoint_has_learned_the_task(toy_run: Path) -> None:
    """It writes most of the sequences without an error; by chance it would write none."""
    assert json.loads((toy_run / "best.json").read_text())["value"] > 50


def test_a_run_writes_for_tensorboard(trained: Path) -> None:
    assert list((trained / "board").iterdir())


def test_a_checkpoint_has_its_files(toy_run: Path) -> None:
    names = {path.name for path in (toy_run / "step_400").iterdir()}
    assert names == {"config.yaml", "vocab.json", "model.safetensors", "training", "SHA256SUMS"}


def test_a_checkpoint_records_defaults(toy_run: Path) -> None:
    config = yaml.safe_load((toy_run / "step_400" / "config.yaml").read_text())
    assert config["options"]["adam_beta1"] == 0.9


# --- another run in its folder ---


def test_a_run_is_not_overwritten_by_mistake(trained: Path) -> None:
    message = fail("train.py", "-config", trained / "toy.yaml")
    assert "already holds checkpoints" in message


def test_resuming_another_model_is_refused(trained: Path, toy_run: Path) -> None:
    arguments = ["-config", trained / "toy.yaml", "-train_from", toy_run, "-layers", 2]
    message = "it was trained with enc_layers 1, the configuration now says 2"
    assert message in refusal(train.main, arguments, progress=True)


# --- a run that stops early ---


class Stopped(NamedTuple):
    """A run by epochs, whose learning rate is too large on purpose."""

    run: Path
    printed: str


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder = tmp_path_factory.mktemp("stopped")
    config = write_config(
        folder,
        train_steps=None,
        valid_steps=None,
        train_epochs=50,
        valid_epochs=1,
        early_stopping=2,
        keep_checkpoint=1,
        rnn_size=8,
        learning_rate=0.3,
    )
    return Stopped(folder / "run", success(train.main, ["-config", config]))


def test_a_run_that_gets_no_better_stops_early(stopped: Stopped) -> None:
    assert "(early_stopping)" in stopped.printed


def test_the_best_and_the_last_checkpoint_are_kept(stopped: Stopped) -> None:
    last = validations(stopped.run)[-1]["step"]
    assert set(checkpoint_steps(stopped.run)) == {best_step(stopped.run), last}
