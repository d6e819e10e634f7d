"""The diffs of CONTRIBUTING.md apply to this checkout and are as small as it says."""

import re
import shutil
import subprocess

import pytest

from tests.commands import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DIFFS = dict(re.findall(r"^### (.+?)$.*?^```diff\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
each = pytest.mark.parametrize("title", DIFFS)


def test_there_is_a_diff_for_each_example() -> None:
    assert list(DIFFS) == re.findall(r"^### (.+)$", TEXT, re.MULTILINE)
    assert len(DIFFS) == TEXT.count("```diff") == 2


@each
def test_a_diff_changes_at_most_three_files_of_the_package(title: str) -> None:
    files = re.findall(r"^\+\+\+ b/(.+)$", DIFFS[title], re.MULTILINE)
    assert 1 <= len(files) <= 3
    assert all(file.startswith("onmt_entmax/") for file in files)


@each
def test_a_diff_applies(title: str) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, input=DIFFS[title], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"mend the diff in CONTRIBUTING.md: {done.stderr}"
