"""The diffs in the pages for contributors apply to this checkout, and the changed code works."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT, json_lines
from tests.toy import write_config

PAGES = ("docs/first-change.md", "docs/further-changes.md")
TEXTS = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
# The first diff below each heading, by the heading.
DIFFS = {
    title: diff
    for text in TEXTS
    for title, diff in re.findall(
        r"^##+ ([^\n]+)\n(?:(?!^##).)*?^```diff\n(.*?)^```$", text, re.M | re.S
    )
}
each_diff = pytest.mark.parametrize("title", DIFFS)

# The headings of the diffs, with the option that each adds and a value to train with.
CHANGES = [
    ("An attention", {"global_attention": "cosine"}),
    pytest.param("An option", {"least_learning_rate": 0.003}, marks=pytest.mark.slow),
    pytest.param("A term of the loss", {"entropy_weight": 0.1}, marks=pytest.mark.slow),
]


def test_every_diff_is_found() -> None:
    assert len(DIFFS) == len(CHANGES) == sum(text.count("```diff") for text in TEXTS)


def files_of(diff: str) -> list[str]:
    """Return the paths of the files that a diff changes."""
    return re.findall(r"^\+\+\+ b/(.+)$", diff, re.MULTILINE)


@each_diff
def test_a_diff_changes_at_most_three_files_of_the_package(title: str) -> None:
    of_the_package = [file for file in files_of(DIFFS[title]) if file.startswith("onmt_entmax/")]
    assert 1 <= len(of_the_package) <= 3


@each_diff
def test_a_diff_changes_nothing_but_the_package_and_its_tests(title: str) -> None:
    assert {file.split("/")[0] for file in files_of(DIFFS[title])} <= {"onmt_entmax", "tests"}


@each_diff
def test_a_diff_applies(title: str) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, input=DIFFS[title], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"mend the diff below '{title}': {done.stderr}"


def patched_copy(title: str, folder: Path) -> Path:
    """Return a copy of the package and its tests to which a diff was applied.

    It has the compiled files, too: to compile all of them would take longer than the test. Python
    compiles those of the patched files again, since their times differ.
    """
    copy = folder / "patched"
    ignored = shutil.ignore_patterns("*.pyc.*")  # which another process is writing
    for name in ("onmt_entmax", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "apply", "-"], input=DIFFS[title], cwd=copy, text=True, check=True)
    return copy


TRANSLATED = 10  # lines, for each of which an exact search is verified

# Trains, decodes and tests in one process: three would each import PyTorch.
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
    """Train, translate and run tests with a patched package; fail unless all succeed.

    Args:
        copy: folder of the patched package and its tests.
        training: arguments of `train`.
        translation: arguments of `translate`.
        tests: arguments of `pytest`; empty, if there are no tests to run.
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
    """OpenNMT-py's own step in float64 confirms all outputs, and the tests of the diff pass."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    config = write_config(tmp_path, **changes, train_steps=10, param_init=1.0)
    source, report = tmp_path / "source", tmp_path / "report.jsonl"
    lines = (tmp_path / "valid.src").read_text().splitlines()[:TRANSLATED]
    source.write_text("".join(f"{line}\n" for line in lines))
    translation = [
        "-model", tmp_path / "run", "-src", source, "-output", tmp_path / "out",
        "-verify", "-search", "exact", "-exactness_report", report,
    ]  # fmt: skip
    tests = [file for file in files_of(DIFFS[title]) if file.startswith("tests/")]
    if tests:
        (value,) = changes.values()  # is in the names of the tests
        tests += ["-q", "-k", str(value), "-p", "no:cacheprovider"]
    copy = patched_copy(title, tmp_path)
    try_change(copy, ["-config", str(config)], [*map(str, translation)], tests)
    verified = [row["verified"] for row in json_lines(report) if "verified" in row]
    assert verified == [True] * TRANSLATED
