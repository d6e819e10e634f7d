"""The diffs of CONTRIBUTING.md apply to this checkout, are as small as it says, and work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT, json_lines
from tests.toy import write_config

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DIFFS = dict(re.findall(r"^### (.+?)$.*?^```diff\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
each_diff = pytest.mark.parametrize("title", DIFFS)


def test_there_is_a_diff_for_each_example() -> None:
    assert list(DIFFS) == re.findall(r"^### (.+)$", TEXT, re.MULTILINE)
    assert len(DIFFS) == TEXT.count("```diff") == 2


@each_diff
def test_a_diff_changes_at_most_three_files_of_the_package(title: str) -> None:
    files = re.findall(r"^\+\+\+ b/(.+)$", DIFFS[title], re.MULTILINE)
    assert 1 <= len(files) <= 3
    assert all(file.startswith("onmt_entmax/") for file in files)


@each_diff
def test_a_diff_applies(title: str) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, input=DIFFS[title], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"mend the diff in CONTRIBUTING.md: {done.stderr}"


CHANGES = [
    ("A new attention", {"global_attention": "distance"}),
    pytest.param(
        "A new term of the loss, with its option", {"entropy_weight": 0.1}, marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("title", "changes"), CHANGES)
def test_a_diff_trains_and_decodes(title: str, changes: dict[str, object], tmp_path: Path) -> None:
    """Decoding agrees with OpenNMT-py's own step in float64, which calls the module."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    package = tmp_path / "patched"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "onmt_entmax", package / "onmt_entmax", ignore=ignored)
    subprocess.run(["git", "init", "-q"], cwd=package, check=True)
    subprocess.run(["git", "apply", "-"], input=DIFFS[title], cwd=package, text=True, check=True)
    report, source = tmp_path / "report.jsonl", tmp_path / "valid.src"
    config = write_config(tmp_path, **changes, train_steps=10, param_init=1.0)
    for arguments in (
        ["train", "-config", config],
        ["translate", "-model", tmp_path / "run", "-src", source, "-output", tmp_path / "out",
         "-verify", "-search", "exact", "-exactness_report", report],
    ):  # fmt: skip
        command = [sys.executable, "-m", "onmt_entmax", *map(str, arguments)]
        done = subprocess.run(
            command,
            env={**ENVIRONMENT, "PYTHONPATH": str(package)},
            cwd=package,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    verified = [row["verified"] for row in json_lines(report) if "verified" in row]
    assert len(verified) == 40
    assert all(verified)
