"""Kill a short training run at random moments, resume it each time, and compare the end.

    python -m tests.faults.kills --kills 200

It trains a small model twice: once undisturbed, once killed by SIGKILL wherever it happens to be
(loading, reading, computing, writing a checkpoint). It prints how many steps each kill cost and
whether the final weights are equal, bit by bit; status 1 if they are not, or if a kill cost more
steps than lie between two checkpoints. What runs is a copy of the package made at the start, so
the package may be worked on meanwhile. A kill takes about as long as a start of `train.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file
from tqdm import tqdm

from onmt_entmax.checkpoint import checkpoint_steps

ROOT = Path(__file__).resolve().parents[2]
SAVED_EVERY = 5


def write_task(folder: Path) -> None:
    """A small task: reverse a string of letters."""
    generator = random.Random(1)
    for name, size in (("train", 300), ("valid", 30)):
        rows = [generator.choices("abcdef", k=generator.randint(2, 6)) for _ in range(size)]
        for suffix, step in ((".src", 1), (".tgt", -1)):
            lines = (" ".join(row[::step]) + "\n" for row in rows)
            (folder / f"{name}{suffix}").write_text("".join(lines), encoding="utf-8")


def freeze(folder: Path) -> None:
    """Copy what trains."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "onmt_entmax", folder / "frozen" / "onmt_entmax", ignore=ignored)
    shutil.copy2(ROOT / "train.py", folder / "frozen")


def command(folder: Path, run: Path, steps: int) -> list[str]:
    """The training command; it continues where there are checkpoints."""
    corpora = {
        name: {"path_src": f"{folder}/{file}.src", "path_tgt": f"{folder}/{file}.tgt"}
        for name, file in (("corpus", "train"), ("valid", "valid"))
    }
    options = (
        f"-encoder_type brnn -layers 2 -rnn_size 64 -word_vec_size 32 -optim adam "
        f"-learning_rate 0.002 -global_attention_function entmax15 -generator_function entmax15 "
        f"-batch_size 16 -train_steps {steps} -valid_steps 20 -decay_method plateau "
        f"-save_checkpoint_steps {SAVED_EVERY} -keep_checkpoint 2 -report_every 1 "
        f"-save_model {run} -seed 7"
    )
    resume = ["-train_from", str(run)] if checkpoint_steps(run) else []
    script = [sys.executable, str(folder / "frozen" / "train.py"), "-data", json.dumps(corpora)]
    return [*script, *options.split(), *resume]


def last_seen(run: Path) -> int:
    """The last step that an undisturbed look at the run folder proves was reached."""
    path = run / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    steps = [json.loads(line)["step"] for line in lines if line.endswith("}")]
    return max([0, *steps, *checkpoint_steps(run)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=2000, help="length of the run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        freeze(folder)
        write_task(folder)
        whole, killed = folder / "whole", folder / "killed"
        started = time.monotonic()
        subprocess.run(command(folder, folder / "short", 1), check=True, stderr=subprocess.DEVNULL)
        startup = time.monotonic() - started
        subprocess.run(command(folder, whole, options.steps), check=True, stderr=subprocess.DEVNULL)
        kills, lost = 0, []
        bar = tqdm(total=options.kills, unit="kill")
        while True:
            # Into a file: a pipe that nobody reads would fill up and hold the run.
            with open(folder / "said", "w", encoding="utf-8") as said:
                process = subprocess.Popen(command(folder, killed, options.steps), stderr=said)
            try:
                wait = generator.uniform(0, 2 * startup) if kills < options.kills else None
                process.wait(wait)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
                bar.update()
                steps = checkpoint_steps(killed)
                lost.append(last_seen(killed) - (steps[-1] if steps else 0))
                continue
            if process.returncode != 0:
                print((folder / "said").read_text(encoding="utf-8"), file=sys.stderr)
                return 1
            break
        bar.close()
        one, other = (
            load_file(run / f"step_{options.steps}" / "model.safetensors")
            for run in (whole, killed)
        )
        equal = all(one[key].equal(other[key]) for key in one)
    worst = max(lost, default=0)
    print(
        f"{kills} kills, most steps lost by one: {worst} (saved every {SAVED_EVERY}), "
        f"final weights equal: {'yes' if equal else 'NO'}"
    )
    return 0 if equal and worst <= SAVED_EVERY else 1


if __name__ == "__main__":
    sys.exit(main())
