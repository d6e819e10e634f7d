"""Running the real commands of the repository, as a user does."""

import os
import random
import subprocess
import sys
from pathlib import Path

from safetensors.torch import load_file

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def run(script: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command of the repository as a user does."""
    return subprocess.run(
        [sys.executable, str(ROOT / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=ENVIRONMENT,
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


def weights(run_folder: Path, step: int) -> dict:
    return load_file(run_folder / f"step_{step}" / "model.safetensors")


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
