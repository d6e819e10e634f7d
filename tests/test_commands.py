"""The real commands, end to end: what they write, how they resume, how they fail."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from onmt_entmax.checkpoint import load
from tests.toy import write_config

ROOT = Path(__file__).parent.parent


def run(script: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command of the repository as a user does."""
    return subprocess.run(
        [sys.executable, str(ROOT / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        timeout=300,
    )


def succeed(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Run a command that must succeed without a warning; returns what it printed."""
    done = run(script, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout + done.stderr


def fail(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Run a command that must fail with one line; returns that line."""
    done = run(script, *arguments, cwd=cwd)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, done.stderr
    assert lines[-1].startswith(f"{script}: error: ")
    assert "Traceback" not in done.stderr
    return lines[-1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy corpora and a run trained on them."""
    folder = tmp_path_factory.mktemp("trained")
    config = write_config(
        folder,
        train_steps=400,
        valid_steps=100,
        save_checkpoint_steps=100,
        selection="exact_match",
        rnn_size=48,
        dropout=0.0,
        tensorboard=True,
        tensorboard_log_dir=str(folder / "board"),
    )
    printed = succeed("train.py", "-config", config)
    assert "step 400, validation: loss" in printed
    return folder


def weights(run_folder: Path, step: int) -> dict:
    return load_file(run_folder / f"step_{step}" / "model.safetensors")


# --- training --------------------------------------------------------------------------------


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
    assert names == {"config.yaml", "vocab.json", "model.safetensors", "training"}
    described = yaml.safe_load((folder / "step_400" / "config.yaml").read_text())
    assert described["options"]["adam_beta1"] == 0.9  # defaults are filled in


def test_a_run_is_not_overwritten_by_mistake(trained: Path) -> None:
    message = fail("train.py", "-config", trained / "toy.yaml")
    assert "already holds checkpoints" in message


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
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 100"):
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
    assert "the model was made with enc_layers 1, the configuration now says 2" in message


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


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, learning_rate=1e38, optim="sgd", max_grad_norm=0, generator_function="softmax"
    )
    message = fail("train.py", "-config", config)
    assert "the loss is" in message
    assert "lower the learning rate" in message


@pytest.mark.parametrize("kilobytes", [1, 20, 60, 150])
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


def toy_ende(folder: Path) -> None:
    """Small files under the names of OpenNMT-py's quick start."""
    generator = random.Random(5)
    (folder / "toy-ende").mkdir()
    for side, letters in (("src", "abcdefgh"), ("tgt", "ABCDEFGH")):
        generator.seed(5)
        for name, size in (("train", 300), ("val", 20)):
            lines = [
                " ".join(generator.choices(letters, k=generator.randint(3, 9))) for _ in range(size)
            ]
            (folder / "toy-ende" / f"{side}-{name}.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "model"), [("toy_en_de", "model"), ("transformer", "transformer")]
)
def test_stock_configurations_train_and_translate(tmp_path: Path, name: str, model: str) -> None:
    toy_ende(tmp_path)
    config = ROOT / "tests" / "stock" / f"{name}.yaml"
    # Only the number of steps is changed, and for the Transformer, whose sixteen batches of 4096
    # tokens an update take minutes on a small machine, the number of tokens.
    fewer = ["-batch_size", 64] if name == "transformer" else []
    printed = succeed("train.py", "-config", config, "-train_steps", 20, *fewer, cwd=tmp_path)
    assert "note: no CUDA device" in printed or "on cuda" in printed
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
    succeed("train.py", "-config", config, "-train_steps", 2, *small, cwd=tmp_path)
    assert (tmp_path / "toy-ende/run/example.vocab.src").read_text() == counted
    tokens = json.loads((tmp_path / "toy-ende/run/model/step_2/vocab.json").read_text())["source"]
    assert set(tokens) == {"<unk>", "<blank>", *"abcdefgh"}


# --- translation -----------------------------------------------------------------------------


def translate(trained: Path, folder: Path, text: str, *options: object) -> list[dict]:
    """Translate `text`; returns the records of the exactness report."""
    (folder / "in").write_text(text)
    output, report = folder / "out", folder / "report.jsonl"
    succeed(
        "translate.py", "-model", trained / "run", "-src", folder / "in", "-output", output,
        "-exactness_report", report, *options,
    )  # fmt: skip
    return [json.loads(line) for line in report.read_text().splitlines()]


def test_translations_and_their_report(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    records = translate(trained, tmp_path, source, "-beam_size", 10)
    references = (trained / "valid.tgt").read_text().splitlines()
    outputs = (tmp_path / "out").read_text().splitlines()
    assert len(outputs) == len(references) == len(records)
    right = sum(a == b for a, b in zip(outputs, references, strict=True))
    assert right / len(references) > 0.5
    for i, (record, output) in enumerate(zip(records, outputs, strict=True)):
        assert record["id"] == i
        assert record["source"] == source.splitlines()[i]
        assert record["certificate"] in ("exhaustive", "optimal", "none")
        best = record["hypotheses"][0]
        assert best["text"] == output
        assert math.isclose(math.exp(best["log_prob"]), best["prob"], rel_tol=1e-6)
        assert 0 < best["prob"] <= record["mass"] + 1e-9 <= 1 + 1e-5
        if record["certificate"] == "exhaustive":
            assert math.isclose(record["mass"], 1, abs_tol=1e-5)
            assert record["bound"] == record["dropped"] == record["truncated"] == 0
        if record["certificate"] != "none":
            assert best["prob"] >= record["bound"]
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    counts = [record["certificate"] for record in records]
    assert summary["certificates"] == {
        level: counts.count(level) for level in ("exhaustive", "optimal", "none")
    }
    assert summary["certificates"]["exhaustive"] > 0
    assert 1 <= summary["mean_output_support"] < 4
    assert 1 <= summary["mean_attention_support"] < 6


def test_blank_lines_keep_their_place(trained: Path, tmp_path: Path) -> None:
    records = translate(trained, tmp_path, "a b c\n\n   \nb a\n", "-n_best", 2)
    lines = (tmp_path / "out").read_text().split("\n")
    assert len(lines) == 4 * 2 + 1
    assert lines[2:6] == [""] * 4
    assert [bool(record["hypotheses"]) for record in records] == [True, False, False, True]


def test_n_best_lists_are_sorted_and_distinct(trained: Path, tmp_path: Path) -> None:
    for record in translate(trained, tmp_path, "a b c\nd e\n", "-n_best", 5):
        probabilities = [h["prob"] for h in record["hypotheses"]]
        assert probabilities == sorted(probabilities, reverse=True)
        texts = [h["text"] for h in record["hypotheses"]]
        assert len(set(texts)) == len(texts)


def test_unknown_tokens_and_very_long_lines(trained: Path, tmp_path: Path) -> None:
    records = translate(trained, tmp_path, "never seen\n" + "a " * 10_000 + "\n")
    assert len(records) == 2


def test_exact_search_proves_every_answer(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    narrow = translate(trained, tmp_path, source, "-beam_size", 1, "-stop", "first")
    exact = translate(trained, tmp_path, source, "-beam_size", 1, "-search", "exact")
    assert all(record["certificate"] != "none" for record in exact)
    for one, other in zip(narrow, exact, strict=True):
        assert other["hypotheses"][0]["prob"] >= one["hypotheses"][0]["prob"] - 1e-6


def test_enumeration_lists_the_support(trained: Path, tmp_path: Path) -> None:
    whole = translate(trained, tmp_path, "a b c\nd e\n", "-search", "enumerate")
    for record in whole:
        assert record["certificate"] == "exhaustive"
        assert len(record["hypotheses"]) == record["finished"]
        assert math.isclose(sum(h["prob"] for h in record["hypotheses"]), 1, abs_tol=1e-5)
    part = translate(trained, tmp_path, "a b c\nd e\n", "-search", "enumerate", "-mass", 0.5)
    assert all(record["mass"] >= 0.5 for record in part)


def test_certified_answers_are_verified_in_float64(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    records = translate(trained, tmp_path, source, "-beam_size", 10, "-verify")
    certified = [record for record in records if record["certificate"] != "none"]
    assert certified
    assert all(record["verified"] for record in certified)
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert (summary["verified"], summary["disagreements"]) == (len(certified), 0)


def test_requests_are_kept(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("c\n\n")
    forced = translate(
        trained, tmp_path, "a b c\nd e\n", "-tgt", tmp_path / "prefixes", "-tgt_prefix"
    )
    assert forced[0]["hypotheses"][0]["text"].startswith("c")
    longer = translate(trained, tmp_path, "a b\n", "-min_length", 5, "-beam_size", 20)
    assert all(len(h["text"].split()) >= 5 for h in longer[0]["hypotheses"])
    requests = ["-block_ngram_repeat", 1, "-ban_unk_token", "-length_penalty", "avg"]
    blocked = translate(trained, tmp_path, "a a b\n", *requests)
    for hypothesis in blocked[0]["hypotheses"]:
        tokens = hypothesis["text"].split()
        assert len(set(tokens)) == len(tokens)
    arguments = translation(trained / "run", tmp_path, tgt=tmp_path / "prefixes")
    assert "-tgt_prefix" in fail("translate.py", *arguments)
    (tmp_path / "prefixes").write_text("Q\n")
    message = fail("translate.py", *arguments, "-tgt_prefix")
    assert "prefix of line 1: 'Q' is not in the target vocabulary" in message
    (tmp_path / "prefixes").write_text("a\nb\nc\n")
    assert "must have 1 lines" in fail("translate.py", *arguments, "-tgt_prefix")


def test_an_ensemble_averages_probabilities(trained: Path, tmp_path: Path) -> None:
    alone = translate(trained, tmp_path, "a b c\n")
    model = trained / "run"
    twice = translate(trained, tmp_path, "a b c\n", "-model", model, model)
    assert twice[0]["hypotheses"][0]["text"] == alone[0]["hypotheses"][0]["text"]
    assert math.isclose(
        twice[0]["hypotheses"][0]["prob"], alone[0]["hypotheses"][0]["prob"], rel_tol=1e-5
    )


@pytest.fixture
def broken(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained model that a test may damage."""
    return Path(shutil.copytree(trained / "run" / "step_400", tmp_path / "model"))


def translation(model: Path, folder: Path, **changes: object) -> list[object]:
    (folder / "in").write_text("a b\n")
    arguments = {"model": model, "src": folder / "in", "output": folder / "out"} | changes
    return [word for key, value in arguments.items() for word in (f"-{key}", value)]


def test_a_checkpoint_cut_in_half(broken: Path, tmp_path: Path) -> None:
    path = broken / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    message = fail("translate.py", *translation(broken, tmp_path))
    assert "model.safetensors: cut short or damaged" in message
    assert not (tmp_path / "out").exists()


def test_a_newer_format(broken: Path, tmp_path: Path) -> None:
    path = broken / "config.yaml"
    path.write_text(path.read_text().replace("format_version: '1.0'", "format_version: '2.0'"))
    assert "format 2.0 is newer" in fail("translate.py", *translation(broken, tmp_path))


def test_an_ensemble_of_different_vocabularies(trained: Path, broken: Path, tmp_path: Path) -> None:
    tokens = json.loads((broken / "vocab.json").read_text())
    tokens["target"][-1], tokens["target"][-2] = tokens["target"][-2], tokens["target"][-1]
    (broken / "vocab.json").write_text(json.dumps(tokens))
    arguments = translation(trained / "run", tmp_path)
    message = fail("translate.py", *arguments[:2], broken, *arguments[2:])
    assert "the target vocabulary of model 2 differs" in message


def test_an_empty_file_and_bytes_that_are_not_text(trained: Path, tmp_path: Path) -> None:
    arguments = translation(trained / "run", tmp_path)
    (tmp_path / "in").write_text("")
    assert "the file is empty" in fail("translate.py", *arguments)
    (tmp_path / "in").write_bytes(b"a b\n\xff\xfe\n")
    assert "line 2 is not UTF-8" in fail("translate.py", *arguments)
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written(trained: Path, tmp_path: Path) -> None:
    arguments = translation(trained / "run", tmp_path, output=tmp_path / "no" / "such" / "folder")
    assert "cannot be written" in fail("translate.py", *arguments)
    arguments = translation(trained / "run", tmp_path, output=tmp_path)
    assert "is a folder" in fail("translate.py", *arguments)
    arguments = translation(trained / "run", tmp_path, exactness_report=tmp_path / "no" / "report")
    assert "cannot be written" in fail("translate.py", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_line_too_long_for_a_transformer(tmp_path: Path) -> None:
    toy_ende(tmp_path)
    small = ["-enc_layers", 1, "-dec_layers", 1, "-transformer_ff", 8, "-heads", 2]
    sizes = ["-rnn_size", 8, "-word_vec_size", 8, "-batch_size", 64, "-train_steps", 1]
    config = ROOT / "tests" / "stock" / "transformer.yaml"
    succeed("train.py", "-config", config, *small, *sizes, cwd=tmp_path)
    arguments = translation(tmp_path / "toy-ende/run/transformer", tmp_path)
    (tmp_path / "in").write_text("a b\n" + "a " * 10_000 + "\n")
    message = fail("translate.py", *arguments)
    assert "line 2: 10000 tokens are more than a Transformer model reads" in message


def test_help_and_interrupts(tmp_path: Path) -> None:
    for script in ("train.py", "translate.py"):
        done = run(script, "-h")
        assert done.returncode == 0
        assert "onmt_entmax" in done.stdout
    config = write_config(tmp_path, train_steps=100000)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), "-config", str(config)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    time.sleep(0.3)  # while it imports
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert process.stderr is not None
    assert "step" not in process.stderr.read()
