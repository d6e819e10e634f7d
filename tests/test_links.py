"""Links of the documents to files and headings of the repository."""

import re
from pathlib import Path

import pytest

from tests.commands import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", path.read_text("utf-8")):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
