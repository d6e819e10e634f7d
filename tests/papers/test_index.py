"""docs/papers.md names what exists and has every numbered item; links in documents work."""

import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import pytest

from onmt_entmax.cli.main import COMMANDS
from onmt_entmax.options.train import training_options
from onmt_entmax.options.translate import translation_options
from tests.commands import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
SPARSE, ADAPTIVE, SPARSEMAX = (ROOT / "docs/papers.md").read_text("utf-8").split("\n## ")[1:4]


def check_command(line: str) -> None:
    """Check that a command, its first word and its options exist."""
    words = shlex.split(line)
    name = " ".join(words[: 2 if words[0] == "prepare" else 1])
    module = name if name.startswith("tools.") else f"onmt_entmax.cli.{re.sub('[ -]', '_', name)}"
    assert module == name or name in COMMANDS
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
    source += " ".join(
        {"train": training_options, "translate": translation_options}.get(name, dict)()
    )
    assert module != name or "".join(words[1:2]).lstrip("-") in source
    assert all(word.lstrip("-") in source for word in words if word[0] == "-")


@pytest.mark.parametrize("name", sorted({*re.findall("`(.+?)`", SPARSE + ADAPTIVE + SPARSEMAX)}))
def test_what_the_index_names_exists(name: str) -> None:
    file, _, function = name.partition(".")
    if file.startswith("test_"):
        paths = ROOT.glob(f"tests/**/{file}.py")
        assert any(f"\ndef {function}(" in path.read_text("utf-8") for path in paths)
    elif ": " in name:
        assert name.split(":")[0] in training_options()
    elif "/" in name.split()[0]:
        assert (ROOT / name).is_file() or (ROOT / "onmt_entmax" / name).is_file()
    elif " " in name or file == name:
        check_command(name)
    else:
        resolve_name(name if file == "tools" else f"onmt_entmax.{name}")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (SPARSE, {"Eq.": 60, "Fig.": 6, "Table": 3, "Algorithm": 2, "Proposition": 3, "Lemma": 3}),
        (ADAPTIVE, {"Eq.": 39, "Fig.": 14, "Table": 1, "Proposition": 1, "Lemma": 1}),
        (SPARSEMAX, {"Algorithm": 1, "Table": 2}),
    ],
    ids=["Peters et al. 2019", "Correia et al. 2019", "Martins and Astudillo 2016"],
)
def test_every_numbered_item_has_a_row(text: str, counts: dict[str, int]) -> None:
    """A row may have several, such as `Eq. 3, 5 to 7`."""
    items = "\n".join(re.findall(r"^\| (.+?) \|", text, re.M))
    for kind, count in counts.items():
        listed = set()
        for numbers in re.findall(rf"{kind} (\d[\d, to]*)", items):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
                listed |= {*range(int(first), int(last or first) + 1)}
        assert listed == {*range(1, count + 1)}


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", path.read_text("utf-8")):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
