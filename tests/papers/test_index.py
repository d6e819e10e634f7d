"""docs/papers.md names what exists and has every numbered item; links of documents work."""

import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import pytest

from onmt_entmax.cli.main import COMMANDS
from onmt_entmax.options.train_table import training_options
from onmt_entmax.options.translate_table import translation_options
from tests.commands import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
SPARSE, ADAPTIVE, SPARSEMAX = (ROOT / "docs/papers.md").read_text("utf-8").split("\n## ")[1:4]


NAMES = sorted({*re.findall("`(.+?)`", SPARSE + ADAPTIVE + SPARSEMAX)})


def kind_of(name: str) -> str:
    """Return what a name in the index stands for."""
    first, _, rest = name.partition(".")
    if first.startswith("test_"):
        return "test"
    if ": " in name:
        return "option"
    if "/" in name.split()[0]:
        return "file"
    return "object" if rest and " " not in name else "command"


def names_of(kind: str) -> pytest.MarkDecorator:
    """Run a test for each name of a kind."""
    return pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) == kind])


@names_of("test")
def test_a_test_that_the_index_names_exists(name: str) -> None:
    file, _, function = name.partition(".")
    paths = ROOT.glob(f"tests/**/{file}.py")
    assert any(f"\ndef {function}(" in path.read_text("utf-8") for path in paths)


@names_of("option")
def test_an_option_that_the_index_names_exists(name: str) -> None:
    assert name.split(":")[0] in training_options()


@names_of("file")
def test_a_file_that_the_index_names_exists(name: str) -> None:
    assert (ROOT / name).is_file() or (ROOT / "onmt_entmax" / name).is_file()


@names_of("object")
def test_an_object_that_the_index_names_exists(name: str) -> None:
    """Names of the package stand without `onmt_entmax`."""
    assert resolve_name(name if name.startswith("tools.") else f"onmt_entmax.{name}") is not None


# Commands whose options are not in their file.
OPTIONS = {"train": training_options, "translate": translation_options}


@names_of("command")
def test_a_command_that_the_index_names_exists(name: str) -> None:
    """So do its options and, of a script, its subcommand."""
    words = shlex.split(name)
    command = " ".join(words[: 2 if words[0] == "prepare" else 1])
    is_script = command.startswith("tools.")
    assert is_script or command in COMMANDS
    module = command if is_script else f"onmt_entmax.cli.{re.sub('[ -]', '_', command)}"
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
    options = {*OPTIONS[command]()} if command in OPTIONS else set()
    named = [word for word in words[1:] if word.startswith("-")]
    if is_script:
        named += words[1:2]  # a subcommand
    for word in named:
        assert word.lstrip("-") in source or word.lstrip("-") in options


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
    items = "\n".join(re.findall(r"^\| (.+?) \|", text, re.M))
    for kind, count in counts.items():
        assert numbers_in(items, kind) == {*range(1, count + 1)}


def numbers_in(items: str, kind: str) -> set[int]:
    """Return the numbers of a kind of item, such as 3, 5, 6 and 7 of `Eq. 3, 5 to 7`."""
    numbers: set[int] = set()
    for listed in re.findall(rf"{kind} (\d[\d, to]*)", items):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


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
