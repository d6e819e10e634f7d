"""The diffs of the pages for contributors apply to this checkout, and work."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT, json_lines
from tests.toy import DEVELOPMENT_PAIRS, write_config

PAGES = ("docs/first-change.md", "docs/further-changes.md")
TEXTS = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
DIFFS = {
    title: diff
    for text in TEXTS
    for title, diff in re.findall(
        r"^##+ ([^\n]+)\n(?:(?!^##).)*?^```diff\n(.*?)^```$", text, re.M | re.S
    )
}
each_diff = pytest.mark.parametrize("title", DIFFS)

# Titles, and the options with which the change of each is tried.
CHANGES = [
    ("An attention", {"global_attention": "cosine"}),
    pytest.param("An option", {"least_learning_rate": 0.003}, marks=pytest.mark.slow),
    pytest.param("A term of the loss", {"entropy_weight": 0.1}, marks=pytest.mark.slow),
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


def patched_copy(title: str, folder: Path) -> Path:
    """Return a copy of the package and its tests to which a diff was applied."""
    copy = folder / "patched"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("onmt_entmax", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "apply", "-"], input=DIFFS[title], cwd=copy, text=True, check=True)
    return copy


# Trains, decodes and tests in one process, since each would import PyTorch anew.
_TRY = """
import json, sys
import pytest
from onmt_entmax.cli import train, translate
training, translation, tests = map(json.loads, sys.argv[1:])
status = train.main(training) or translate.main(translation)
sys.exit(status or (pytest.main(tests) if tests else 0))
"""


def try_change(
    copy: Path, training: list[str], translation: list[str], tests: Sequence[str]
) -> None:
    """Train, translate and run tests with the patched package, which must succeed.

    Args:
        copy: a folder with the package and its tests.
        training: the arguments of `train`.
        translation: those of `translate`.
        tests: those of `pytest`; none, if there are no tests to run.
    """
    done = subprocess.run(
        [sys.executable, "-c", _TRY, *map(json.dumps, (training, translation, tests))],
        env={**ENVIRONMENT, "PYTHONPATH": str(copy)},
        cwd=copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("title", "changes"), CHANGES)
def test_a_diff_trains_and_decodes(title: str, changes: dict[str, object], tmp_path: Path) -> None:
    """Decoding agrees with OpenNMT-py's own step in float64, and the diff's own tests pass."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    config = write_config(tmp_path, **changes, train_steps=10, param_init=1.0)
    report = tmp_path / "report.jsonl"
    translation = [
        "-model", tmp_path / "run", "-src", tmp_path / "valid.src", "-output", tmp_path / "out",
        "-verify", "-search", "exact", "-exactness_report", report,
    ]  # fmt: skip
    tests = re.findall(r"^\+\+\+ b/(tests/.+)$", DIFFS[title], re.MULTILINE)
    if tests:
        (name,) = changes.values()
        tests += ["-q", "-k", str(name), "-p", "no:cacheprovider"]
    copy = patched_copy(title, tmp_path)
    try_change(copy, ["-config", str(config)], [*map(str, translation)], tests)
    verified = [row["verified"] for row in json_lines(report) if "verified" in row]
    assert verified == [True] * DEVELOPMENT_PAIRS
