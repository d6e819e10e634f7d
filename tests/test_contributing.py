"""The diffs of CONTRIBUTING.md and docs/first-change.md apply to this checkout, and work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT, json_lines
from tests.toy import write_config

PAGES = ("CONTRIBUTING.md", "docs/first-change.md")
TEXTS = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
DIFFS = {
    title: diff
    for text in TEXTS
    for title, diff in re.findall(
        r"^##+ ([^\n]+)\n(?:(?!^##).)*?^```diff\n(.*?)^```$", text, re.M | re.S
    )
}
each_diff = pytest.mark.parametrize("title", DIFFS)

CHANGES = [
    ("An attention", {"global_attention": "cosine"}),
    pytest.param("An option", {"least_learning_rate": 0.003}, marks=pytest.mark.slow),
    pytest.param(
        "A new term of the loss, with its option", {"entropy_weight": 0.1}, marks=pytest.mark.slow
    ),
]


def test_every_diff_is_found() -> None:
    assert len(DIFFS) == len(CHANGES) == sum(text.count("```diff") for text in TEXTS)


@each_diff
def test_a_diff_changes_at_most_three_files_of_the_package(title: str) -> None:
    files = re.findall(r"^\+\+\+ b/(.+)$", DIFFS[title], re.MULTILINE)
    assert 1 <= sum(file.startswith("onmt_entmax/") for file in files) <= 3
    assert all(file.startswith(("onmt_entmax/", "tests/")) for file in files)


@each_diff
def test_a_diff_applies(title: str) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, input=DIFFS[title], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"mend the diff below '{title}': {done.stderr}"


@pytest.mark.parametrize(("title", "changes"), CHANGES)
def test_a_diff_trains_and_decodes(title: str, changes: dict[str, object], tmp_path: Path) -> None:
    """Decoding agrees with OpenNMT-py's own step in float64, and the diff's own tests pass."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    copy = tmp_path / "patched"
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("onmt_entmax", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "apply", "-"], input=DIFFS[title], cwd=copy, text=True, check=True)
    report, source = tmp_path / "report.jsonl", tmp_path / "valid.src"
    config = write_config(tmp_path, **changes, train_steps=10, param_init=1.0)
    commands = [
        ["onmt_entmax", "train", "-config", config],
        ["onmt_entmax", "translate", "-model", tmp_path / "run", "-src", source,
         "-output", tmp_path / "out", "-verify", "-search", "exact", "-exactness_report", report],
    ]  # fmt: skip
    tests = re.findall(r"^\+\+\+ b/(tests/.+)$", DIFFS[title], re.MULTILINE)
    if tests:
        word = str(*changes.values())
        commands.append(["pytest", *tests, "-q", "-k", word, "-p", "no:cacheprovider"])
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)],
            env={**ENVIRONMENT, "PYTHONPATH": str(copy)},
            cwd=copy,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    verified = [row["verified"] for row in json_lines(report) if "verified" in row]
    assert len(verified) == 40
    assert all(verified)
