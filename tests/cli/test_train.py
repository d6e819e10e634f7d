"""train.py, end to end: what it leaves, how it resumes, how it fails."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from onmt_entmax.checkpoint import load
from tests.commands import ROOT, fail, json_lines, succeed
from tests.toy import write_config


def test_a_run_leaves_what_it_should(trained: Path) -> None:
    folder = trained / "run"
    best = json.loads((folder / "best.json").read_text())
    assert best["metric"] == "exact_match"
    assert best["value"] > 50
    metrics = json_lines(folder / "metrics.jsonl")
    valid = [m for m in metrics if m["kind"] == "valid"]
    assert [m["step"] for m in valid] == [100, 200, 300, 400]
    assert max(m["exact_match"] for m in valid) == best["value"]
    assert valid[-1]["support"] < 4
    assert list((trained / "board").iterdir())
    names = {path.name for path in (folder / "step_400").iterdir()}
    assert names == {"config.yaml", "vocab.json", "model.safetensors", "training", "SHA256SUMS"}
    described = yaml.safe_load((folder / "step_400" / "config.yaml").read_text())
    assert described["options"]["adam_beta1"] == 0.9  # defaults are filled in


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
