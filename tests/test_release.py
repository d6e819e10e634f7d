"""What a release consists of agrees: version, citations, the site's API page, CI's recipes."""

import re
from pathlib import Path

import pytest
import yaml

import onmt_entmax
from tests.commands import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_citation_and_the_changelog_are_of_this_version() -> None:
    newest = re.search(r"^## \[(\d\S+)\] - (\S+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert newest.groups() == (CITATION["version"], str(CITATION["date-released"]))
    assert CITATION["version"] == onmt_entmax.__version__


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


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".pre-commit-config.yaml", ROOT / ".ci/run"])
def test_recipes_call_targets_of_the_makefile(path: Path) -> None:
    targets = re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE)
    called = re.findall(r"(?:run:|entry:|^)[ ]*make ([\w-]+)", path.read_text(), re.MULTILINE)
    assert set(called) <= set(targets)
    assert called or path.name == "wheels.yml"


def test_ci_and_the_wheels_have_every_supported_python() -> None:
    project = text("pyproject.toml")
    (least,) = re.findall(r'requires-python = ">=3\.(\d+)"', project)
    ((first, last),) = re.findall(r"\(3, (\d+)\) <= sys.version_info\[:2\] <= \(3, (\d+)\)",
                                  text("Makefile"))  # fmt: skip
    assert least == first
    versions = [f"3.{minor}" for minor in range(int(first), int(last) + 1)]
    assert f"Python {versions[0]} to {versions[-1]}" in text("README.md")
    jobs = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]
    for name in ("test", "wheel"):
        assert jobs[name]["strategy"]["matrix"]["python"] == versions
    (oldest,) = re.findall(r'"torch>=([\d.]+)"', project)
    more = jobs["test"]["strategy"]["matrix"]["include"]
    assert [row["torch"] for row in more if row["os"] == "ubuntu-latest"] == [
        f"{oldest}.0",
        "newest",
    ]
    assert re.findall(r'"cp3(\d+)-\*"', project) == [version[2:] for version in versions]


def test_pip_and_uv_leave_pyonmttok_out_of_the_same_pythons() -> None:
    project = text("pyproject.toml")
    markers = re.findall(r'"(?:OpenNMT-py==2.3.0|pyonmttok[^;\n]*); (.*)"', project)
    assert len(markers) == 2
    assert markers[0] == markers[1]
