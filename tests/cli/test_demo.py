"""`make demo`: a shell can repeat the commands that it shows, and gets the same files.

The demo runs in a copy of the repository's root with a quick training: a minute in place of many.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.commands import ENVIRONMENT, ROOT
from tools import demo

pytestmark = pytest.mark.slow

FILES = ("data/dev.src", "dev.pred", "dev.best", "dev.report.jsonl", "dev.html")
QUICK = {"train_steps": 40, "valid_steps": 20, "warmup_steps": 10, "rnn_size": 32}


def write_root(root: Path) -> None:
    """Write a folder like the repository's root, with fewer data and a quick training."""
    samples, config = root / "data" / "samples", root / "config" / "demo" / "demo.yaml"
    shutil.copytree(ROOT / "data" / "samples", samples)
    for path in samples.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:40]), encoding="utf-8")
    content = yaml.safe_load((ROOT / "config" / "demo" / "demo.yaml").read_text(encoding="utf-8"))
    config.parent.mkdir(parents=True)
    config.write_text(yaml.safe_dump(content | QUICK), encoding="utf-8")
    if sys.prefix != sys.base_prefix:  # the commands shown begin with those of the root's .venv
        (root / ".venv").symlink_to(sys.prefix)


def contents(root: Path) -> dict[str, str]:
    """Return the files that the demo wrote, by name."""
    return {name: (root / "run" / "demo" / name).read_text(encoding="utf-8") for name in FILES}


class Demo(NamedTuple):
    """A finished demo."""

    root: Path
    printed: str
    files: dict[str, str]

    @property
    def commands(self) -> list[str]:
        """The lines that a shell can repeat."""
        return re.findall(r"(?m)^\$ (.*)$", self.printed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    root = tmp_path_factory.mktemp("demo")
    write_root(root)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setattr(demo, "ROOT", root)
        patch.setattr(sys, "argv", ["demo.py"])
        assert demo.main() == 0
    return Demo(root, printed.getvalue(), contents(root))


def test_the_commands_of_the_package_are_shown(finished: Demo) -> None:
    shown = [line.split()[1] for line in finished.commands if line.startswith("onmt-entmax ")]
    assert shown == ["prepare", "train", "translate", "evaluate", "report"]


def test_a_shell_repeats_the_demo(finished: Demo) -> None:
    shutil.rmtree(finished.root / "run")
    environment = dict(ENVIRONMENT)
    if not (finished.root / ".venv").exists():  # nothing shown lets the shell find `onmt-entmax`
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-e", "-c", "\n".join(finished.commands)]
    subprocess.run(shell, cwd=finished.root, env=environment, check=True, capture_output=True)
    assert contents(finished.root) == finished.files


def test_the_page_is_named_at_the_end(finished: Demo) -> None:
    *_, page, address = finished.printed.splitlines()
    assert page.endswith(": run/demo/dev.html")
    assert address.endswith((finished.root / "run" / "demo" / "dev.html").as_uri())


def test_the_page_has_a_drawing_of_each_word_with_outputs(finished: Demo) -> None:
    records = map(json.loads, finished.files["dev.report.jsonl"].splitlines())
    words = sum(bool(record["hypotheses"]) for record in records)
    assert finished.files["dev.html"].count('id="drawing-') == words > 0
