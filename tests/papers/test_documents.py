"""Scripts and configurations that documents and comments name exist, and are called rightly."""

import re

import pytest

from tests.commands import ROOT

DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(path for path in ROOT.glob("docs/*") if path.is_file()),
    *ROOT.glob("config/**/*.yaml"),
    *ROOT.glob("tools/papers/*.py"),
]
SCRIPTS = [
    path.stem
    for path in sorted(ROOT.glob("tools/papers/*.py"))
    if "__main__" in path.read_text(encoding="utf-8")
]


def names_in_documents(pattern: str) -> list[str]:
    """Return the different texts that a pattern finds in the documents, sorted."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    return sorted({name for text in texts for name in re.findall(pattern, text)})


@pytest.mark.parametrize("name", names_in_documents(r"python -m tools\.papers\.(\w+)"))
def test_a_script_in_a_document_exists(name: str) -> None:
    assert name in SCRIPTS


CONFIGURATIONS = names_in_documents(r"config/[\w/.-]+\.yaml")
PLACEHOLDER = "MATRIX"  # stands for the name of any matrix


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if PLACEHOLDER not in name])
def test_a_configuration_in_a_document_exists(name: str) -> None:
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("name", [*SCRIPTS, "multilabel", "nli"])
def test_documents_do_not_call_a_script_of_papers_by_onmt_entmax(name: str) -> None:
    """Scripts are called as modules. `multilabel` and `nli` are subcommands of one of them."""
    assert name not in names_in_documents(r"onmt-entmax ([a-z][\w-]+)")
