"""docs/papers.md: each test, option, file, object and command that it names exists."""

import argparse
import re
import shlex
from importlib import import_module
from pkgutil import resolve_name

import pytest

from onmt_entmax.cli.main import COMMANDS
from onmt_entmax.options.train_table import training_options
from onmt_entmax.options.translate_table import translation_options
from tests.commands import ROOT
from tests.papers.parsers import parser_of, parser_of_script, unknown_words

_SECTIONS = (ROOT / "docs/papers.md").read_text("utf-8").split("\n## ")
SECTIONS = {section.partition("\n")[0]: section for section in _SECTIONS}
"""The document's sections, by their headings."""
SPARSE, ADAPTIVE, SPARSEMAX = (
    "Sparse Sequence-to-Sequence Models",
    "Adaptively Sparse Transformers",
    "From Softmax to Sparsemax",
)
NAMES = sorted(
    {
        name
        for paper in (SPARSE, ADAPTIVE, SPARSEMAX)
        for name in re.findall("`(.+?)`", SECTIONS[paper])
    }
)


KINDS = {
    "test": r"test_\w+\.test_\w+",
    "option": r"\w+: .+",
    "file": r"[\w.-]+/\S+",
    "object": r"\w+(\.\w+)+",
    "command": r".+",
}
"""What a name in the index stands for: the first kind whose pattern it has."""


def kind_of(name: str) -> str:
    """Return the kind of a name."""
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, name))


def names_of(kind: str) -> list[str]:
    """Return the names of a kind, of which there must be some."""
    names = [name for name in NAMES if kind_of(name) == kind]
    assert names
    return names


def is_a_test(name: str) -> bool:
    """Return whether there is a test, such as `test_cases.test_an_exact_search_...`."""
    file, _, function = name.partition(".")
    paths = ROOT.glob(f"tests/**/{file}.py")
    return any(f"\ndef {function}(" in path.read_text("utf-8") for path in paths)


def test_tests_that_the_index_names_exist() -> None:
    assert [name for name in names_of("test") if not is_a_test(name)] == []


def test_options_that_the_index_names_exist() -> None:
    options = training_options()
    assert [name for name in names_of("option") if name.split(":")[0] not in options] == []


def test_files_that_the_index_names_exist() -> None:
    places = (ROOT, ROOT / "onmt_entmax")
    missing = [
        name for name in names_of("file") if not any((place / name).is_file() for place in places)
    ]
    assert missing == []


@pytest.mark.parametrize("name", names_of("object"))
def test_an_object_that_the_index_names_exists(name: str) -> None:
    """Names of the package stand without `onmt_entmax`."""
    assert resolve_name(name if name.startswith("tools.") else f"onmt_entmax.{name}") is not None


# --- commands --------------------------------------------------------------------------------

# The commands that have OpenNMT-py's form of options, and no parser of argparse's.
OPTIONS = {"train": training_options(), "translate": translation_options()}


def unknown_words_of(command: str, words: list[str]) -> list[str]:
    """Return the options, subcommands and choices among some words that a command lacks."""
    if command in OPTIONS:
        options = (word for word in words if word.startswith("-"))
        return [word for word in options if word.lstrip("-") not in OPTIONS[command]]
    if command == "tools.papers.corpora":  # which gives further options to `prepare files`
        further_options = parser_of_command("prepare files")._option_string_actions
        return unknown_words(parser_of_script(command), words, further_options)
    if command.startswith("tools."):
        return unknown_words(parser_of_script(command), words)
    return unknown_words(parser_of_command(command), words)


def parser_of_command(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command of `onmt-entmax`."""
    module = import_module(f"onmt_entmax.cli.{re.sub('[ -]', '_', name)}")
    return parser_of(lambda: module.main([]))


def command_and_words(name: str) -> tuple[str, list[str]]:
    """Divide a command line of the index into the command's name and its arguments."""
    words = shlex.split(name)
    length = 2 if words[0] == "prepare" else 1
    return " ".join(words[:length]), words[length:]


def is_a_command(name: str) -> bool:
    """Return whether the first words of a command line are a command or a script."""
    command, _ = command_and_words(name)
    return command in COMMANDS or (ROOT / f"{command.replace('.', '/')}.py").is_file()


def test_commands_that_the_index_names_exist() -> None:
    assert [name for name in names_of("command") if not is_a_command(name)] == []


@pytest.mark.parametrize("name", names_of("command"))
def test_a_command_knows_the_words_that_the_index_gives_it(name: str) -> None:
    assert unknown_words_of(*command_and_words(name)) == []


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("train", "-heads_of"),
        ("inflect", "--al"),
        ("tools.bench.mapping", "--clocks"),
        ("tools.papers.corpora", "wmt15"),
        ("tools.papers.corpora", "--symbol"),
        ("tools.papers.figures", "forces"),
    ],
)
def test_a_word_that_a_command_lacks_would_be_found(command: str, word: str) -> None:
    assert unknown_words_of(command, [word]) == [word]


# --- numbered items --------------------------------------------------------------------------


def numbers_in(items: str, kind: str) -> set[int]:
    """Return the numbers of a kind of item, such as 3, 5, 6 and 7 of `Eq. 3, 5 to 7`."""
    numbers: set[int] = set()
    for listed in re.findall(rf"{kind} (\d[\d, to]*)", items):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


@pytest.mark.parametrize(
    ("paper", "counts"),
    [
        (SPARSE, {"Eq.": 60, "Fig.": 6, "Table": 3, "Algorithm": 2, "Proposition": 3, "Lemma": 3}),
        (ADAPTIVE, {"Eq.": 39, "Fig.": 14, "Table": 1, "Proposition": 1, "Lemma": 1}),
        (SPARSEMAX, {"Algorithm": 1, "Table": 2}),
    ],
    ids=["Peters et al. 2019", "Correia et al. 2019", "Martins and Astudillo 2016"],
)
def test_every_numbered_item_has_a_row(paper: str, counts: dict[str, int]) -> None:
    items = "\n".join(re.findall(r"^\| (.+?) \|", SECTIONS[paper], re.M))
    for kind, count in counts.items():
        assert numbers_in(items, kind) == {*range(1, count + 1)}
