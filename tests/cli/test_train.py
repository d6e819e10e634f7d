"""train.py, end to end: what it leaves, how it resumes, how it fails."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.checkpoint import load
from tests.commands import ROOT, fail, json_lines, succeed
from tests.toy import write_config


def validations(run: Path) -> list[dict[str, Any]]:
    return [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "valid"]


def test_validations_are_logged(trained: Path) -> None:
    rows = validations(trained / "run")
    assert [row["step"] for row in rows] == [100, 200, 300, 400]
    assert rows[-1]["support"] < 4


def test_the_best_checkpoint_is_that_of_the_best_validation(trained: Path) -> None:
    best = json.loads((trained / "run" / "best.json").read_text())
    assert best["metric"] == "exact_match"
    assert best["value"] == max(row["exact_match"] for row in validations(trained / "run"))
    assert best["value"] > 50


def test_a_run_writes_for_tensorboard(trained: Path) -> None:
    assert list((trained / "board").iterdir())


def test_a_checkpoint_has_its_files(trained: Path) -> None:
    names = {path.name for path in (trained / "run" / "step_400").iterdir()}
    assert names == {"config.yaml", "vocab.json", "model.safetensors", "training", "SHA256SUMS"}


def test_a_checkpoint_records_defaults(trained: Path) -> None:
    config = yaml.safe_load((trained / "run" / "step_400" / "config.yaml").read_text())
    assert config["options"]["adam_beta1"] == 0.9


def test_a_run_is_not_overwritten_by_mistake(trained: Path) -> None:
    message = fail("train.py", "-config", trained / "toy.yaml")
    assert "already holds checkpoints" in message


def test_resuming_another_model_is_refused(trained: Path) -> None:
    message = fail(
        "train.py", "-config", trained / "toy.yaml", "-train_from", trained / "run", "-layers", 2
    )
    assert "it was trained with enc_layers 1, the configuration now says 2" in message


def test_epochs_early_stopping_and_pruning(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        train_steps=None,
        valid_steps=None,
        train_epochs=50,
        valid_epochs=1,
        early_stopping=2,
        keep_checkpoint=1,
        rnn_size=8,
        learning_rate=0.3,  # too large on purpose
    )
    printed = succeed("train.py", "-config", config)
    assert "(early_stopping)" in printed
    assert len(list((tmp_path / "run").glob("step_*"))) <= 2


def test_a_gradient_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        learning_rate=1000,
        optim="sgd",
        max_grad_norm=0,
        global_attention="mlp",
        generator_function="softmax",
    )
    message = fail("train.py", "-config", config)
    assert re.search("the gradient norm is (inf|nan) at step", message)
    assert "lower the learning rate" in message


@pytest.mark.parametrize(
    "kilobytes", [1, 60, *(pytest.param(n, marks=pytest.mark.slow) for n in (20, 150))]
)
def test_a_full_disk_is_one_line_and_leaves_whole_checkpoints(
    tmp_path: Path, kilobytes: int
) -> None:
    """Files may not grow beyond a limit, which hits another one of the run's files each time."""
    import resource

    config = write_config(tmp_path, src_vocab=str(tmp_path / "vocab.src"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "-config", str(config)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (1024 * kilobytes, 1024 * kilobytes)
        ),
    )
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("train.py: error: ")
    assert "Traceback" not in done.stderr
    run = tmp_path / "run"
    assert not list(run.glob(".*.tmp"))
    for folder in run.glob("step_*"):
        load(folder)
