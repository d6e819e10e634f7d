"""The kernels of the static path: checked in Triton's interpreter (or on a GPU)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="the GPU kernels need Triton")
ROOT = Path(__file__).parent.parent.parent


def test_kernels() -> None:
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **interpreted}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/nn/static_kernel_checks.py"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
