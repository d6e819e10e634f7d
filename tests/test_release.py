"""Files about the package as a whole agree: versions, citations, the API page, CI and Makefile."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import onmt_entmax
from tests.commands import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def text(path: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


# --- version and citations -------------------------------------------------------------------


def test_the_citation_is_of_this_version() -> None:
    assert CITATION["version"] == onmt_entmax.__version__


def test_the_newest_release_of_the_changelog_is_the_cited_one() -> None:
    newest = re.search(r"^## \[(\d\S+)\] - (\S+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert newest.groups() == (CITATION["version"], str(CITATION["date-released"]))


def test_there_is_a_bibtex_entry_for_the_software_and_each_paper() -> None:
    entries = text("CITATION.bib").replace("{{", "{")
    works = [CITATION, *CITATION["references"]]
    assert len(re.findall("^@", entries, re.MULTILINE)) == len(works)
    assert f"version = {{{CITATION['version']}}}" in entries
    for work in works:
        assert f"title = {{{work['title']}" in entries
        assert work.get("doi", "") in entries


def test_the_api_page_has_every_public_name() -> None:
    shown = re.findall(r"^::: onmt_entmax\.(.+)$", text("tools/site/api.md"), re.MULTILINE)
    public = {name for name in onmt_entmax.__all__ if name != "__version__"}
    assert sorted(shown) == sorted([*public, "huggingface.register"])


# --- continuous integration ------------------------------------------------------------------

# Files that call targets of the Makefile; wheels.yml builds without it.
CALLERS = [
    *(path for path in WORKFLOWS if path.name != "wheels.yml"),
    ROOT / ".pre-commit-config.yaml",
    ROOT / ".ci/run",
]


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.name)
def test_called_targets_are_in_the_makefile(path: Path) -> None:
    targets = re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE)
    called = re.findall(r"(?:run:|entry:|^)[ ]*make ([\w-]+)", path.read_text(), re.MULTILINE)
    assert called
    assert set(called) <= set(targets)


# --- supported versions ----------------------------------------------------------------------


class TestSupportedPythons:
    """The Makefile has the range, since it refuses other interpreters."""

    @pytest.fixture(scope="class")
    def minors(self) -> list[str]:
        """The minor versions of Python 3, from the oldest."""
        pattern = r"\(3, (\d+)\) <= sys.version_info\[:2\] <= \(3, (\d+)\)"
        ((first, last),) = re.findall(pattern, text("Makefile"))
        return [str(minor) for minor in range(int(first), int(last) + 1)]

    @pytest.fixture(scope="class")
    def jobs(self) -> dict[str, Any]:
        """The jobs of CI by name."""
        return yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]

    def test_begin_with_the_oldest_that_the_package_requires(self, minors: list[str]) -> None:
        assert re.findall(r'requires-python = ">=3\.(\d+)"', text("pyproject.toml")) == minors[:1]

    def test_are_named_in_the_readme(self, minors: list[str]) -> None:
        assert f"Python 3.{minors[0]} to 3.{minors[-1]}" in text("README.md")

    @pytest.mark.parametrize("name", ["test", "wheel"])
    def test_are_those_of_ci(self, name: str, jobs: dict[str, Any], minors: list[str]) -> None:
        versions = jobs[name]["strategy"]["matrix"]["python"]
        assert versions == [f"3.{minor}" for minor in minors]

    def test_have_wheels(self, minors: list[str]) -> None:
        assert re.findall(r'"cp3(\d+)-\*"', text("pyproject.toml")) == minors

    def test_are_tested_by_ci_with_the_oldest_and_the_newest_torch(
        self, jobs: dict[str, Any]
    ) -> None:
        (oldest,) = re.findall(r'"torch>=([\d.]+)"', text("pyproject.toml"))
        rows = jobs["test"]["strategy"]["matrix"]["include"]
        versions = [row["torch"] for row in rows if row["os"] == "ubuntu-latest"]
        assert versions == [f"{oldest}.0", "newest"]


def test_pip_and_uv_install_pyonmttok_for_the_same_pythons() -> None:
    project = text("pyproject.toml")
    markers = re.findall(r'"(?:OpenNMT-py==2.3.0|pyonmttok[^;\n]*); (.*)"', project)
    assert len(markers) == 2  # pip reads that of OpenNMT-py, and uv that of pyonmttok
    assert markers[0] == markers[1]
