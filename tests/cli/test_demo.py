"""`make demo`: a shell can repeat the commands that it shows, and gets the same files."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import ENVIRONMENT, ROOT
from tools import demo

FILES = ("data/dev.src", "dev.pred", "dev.best", "dev.report.jsonl", "dev.html")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder like the repository's root, with a quick training in place of the demo's."""
    shutil.copytree(ROOT / "data" / "samples", tmp_path / "data" / "samples")
    for path in (tmp_path / "data" / "samples").iterdir():
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:40]))
    content = yaml.safe_load((ROOT / "config" / "demo" / "demo.yaml").read_text(encoding="utf-8"))
    content |= {"train_steps": 40, "valid_steps": 20, "warmup_steps": 10, "rnn_size": 32}
    config = tmp_path / "config" / "demo" / "demo.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(yaml.safe_dump(content))
    if sys.prefix != sys.base_prefix:
        (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def contents(root: Path) -> list[str]:
    return [(root / "run" / "demo" / name).read_text(encoding="utf-8") for name in FILES]


@pytest.mark.slow
def test_a_shell_repeats_the_demo(root: Path, monkeypatch: Any, capfd: Any) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(demo, "ROOT", root)
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    assert demo.main() == 0
    printed = capfd.readouterr().out
    first = contents(root)
    shutil.rmtree(root / "run")

    shown = re.findall(r"(?m)^\$ (.*)$", printed)
    assert [line.split()[1] for line in shown if line.startswith("onmt-entmax ")] == [
        "prepare", "train", "translate", "evaluate", "report",
    ]  # fmt: skip
    environment = dict(ENVIRONMENT)
    if not (root / ".venv").exists():
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-e", "-c", "\n".join(shown)]
    subprocess.run(shell, cwd=root, env=environment, check=True, capture_output=True)
    assert contents(root) == first

    *_, said, opened = printed.splitlines()
    assert said.endswith(": run/demo/dev.html")
    assert opened.endswith((root / "run" / "demo" / "dev.html").as_uri())
    listed = sum(bool(json.loads(line)["hypotheses"]) for line in first[3].splitlines())
    assert first[4].count('id="drawing-') == listed > 0
