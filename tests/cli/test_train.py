"""train.py, end to end: what it leaves, how it resumes, how it fails."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import load
from tests.commands import ENVIRONMENT, ROOT, fail, succeed, toy_ende, weights
from tests.toy import write_config


def test_a_run_leaves_what_it_should(trained: Path) -> None:
    folder = trained / "run"
    best = json.loads((folder / "best.json").read_text())
    assert best["metric"] == "exact_match"
    assert best["value"] > 50
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
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


@pytest.mark.slow
def test_sigterm_and_resume_give_the_same_weights(tmp_path: Path) -> None:
    """Stopped at half by SIGTERM and resumed: the same weights as without interruption."""
    # Averages of a plateau rule, dropout and the order of batches all have to come back.
    settings = {
        "save_checkpoint_steps": 1000,
        "layers": 2,
        "train_steps": 300,
        "valid_steps": 50,
        "decay_method": "plateau",
        "bucket_size": 90,
    }
    whole = write_config(tmp_path, save_model=str(tmp_path / "whole"), **settings)
    succeed("train.py", "-config", whole)
    half = write_config(tmp_path, save_model=str(tmp_path / "half"), **settings)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), "-config", str(half)],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "step 100/300" in line:
            process.send_signal(signal.SIGTERM)
            break
    rest = process.stderr.read()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert "stopped at step" in rest
    assert "-train_from" in rest
    stopped = max(int(p.name[5:]) for p in (tmp_path / "half").glob("step_*"))
    assert 100 <= stopped < 300
    printed = succeed("train.py", "-config", half, "-train_from", tmp_path / "half")
    assert f"continuing from {tmp_path / 'half' / f'step_{stopped}'}" in printed
    one, other = weights(tmp_path / "whole", 300), weights(tmp_path / "half", 300)
    assert one.keys() == other.keys()
    assert all(one[name].equal(other[name]) for name in one)

    def validations(name: str) -> list[tuple[int, float]]:
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        return [(row["step"], row["loss"]) for row in rows if row["kind"] == "valid"]

    assert validations("whole") == validations("half")


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


@pytest.mark.parametrize(
    ("name", "model", "steps"),
    [
        ("toy_en_de", "model", 20),
        pytest.param("transformer", "transformer", 4, marks=pytest.mark.slow),
    ],
)
def test_stock_configurations_train_and_translate(
    tmp_path: Path, name: str, model: str, steps: int
) -> None:
    toy_ende(tmp_path)
    config = ROOT / "tests" / "stock" / f"{name}.yaml"
    # Only the number of steps is changed, the GPUs, and for the Transformer, whose sixteen batches
    # of 4096 tokens an update take minutes on a small machine, the number of tokens.
    fewer = ["-batch_size", 64] if name == "transformer" else []
    command = ("train.py", "-config", config, "-train_steps", steps, *fewer)
    if not torch.cuda.is_available():
        assert "no GPU here" in fail(*command, "-gpu_ranks", 0, cwd=tmp_path)
    succeed(*command, "-gpu_ranks", cwd=tmp_path)
    run_folder = tmp_path / "toy-ende" / "run"
    assert (run_folder / "example.vocab.src").is_file()
    source = tmp_path / "toy-ende" / "src-val.txt"
    limit = ["-max_length", 12]
    succeed(
        "translate.py",
        "-model",
        run_folder / model,
        "-src",
        source,
        "-output",
        "o",
        *limit,
        cwd=tmp_path,
    )
    assert len((tmp_path / "o").read_text().splitlines()) == 20


def test_vocabularies_of_onmt_build_vocab_are_accepted(tmp_path: Path) -> None:
    toy_ende(tmp_path)
    config = ROOT / "tests" / "stock" / "toy_en_de.yaml"
    (tmp_path / "toy-ende" / "run").mkdir()
    command = [sys.executable, "-m", "onmt.bin.build_vocab", "-config", str(config), "-n_sample"]
    subprocess.run([*command, "200"], cwd=tmp_path, check=True, capture_output=True)
    counted = (tmp_path / "toy-ende/run/example.vocab.src").read_text()
    small = ["-rnn_size", 16, "-word_vec_size", 8]
    succeed("train.py", "-config", config, "-train_steps", 2, "-gpu_ranks", *small, cwd=tmp_path)
    assert (tmp_path / "toy-ende/run/example.vocab.src").read_text() == counted
    tokens = json.loads((tmp_path / "toy-ende/run/model/step_2/vocab.json").read_text())["source"]
    assert set(tokens) == {"<unk>", "<blank>", *"abcdefgh"}


def test_an_interrupt_while_libraries_load_ends_the_program(tmp_path: Path) -> None:
    config = write_config(tmp_path, train_steps=100000)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), "-config", str(config)],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    time.sleep(0.3)  # while it imports
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert process.stderr is not None
    assert "step" not in process.stderr.read()
