"""`translate -tgt FILE -tgt_prefix`: outputs begin with the prefixes of a file."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import translate as command
from tests.cli.translating import Translated, UnsureLine, arguments_of, translate
from tests.in_process import refusal


class OtherBeginning(NamedTuple):
    """A source line, and a token with which possible outputs begin, but not the best one."""

    source: str
    token: str


@pytest.fixture(scope="module")
def other_beginning(unsure_lines: list[UnsureLine]) -> OtherBeginning:
    """The first such line; which one it is depends on the machine that trained the model."""
    for line in unsure_lines:
        best, *others = (text.split()[:1] for text in line.outputs)
        for beginning in others:
            if beginning and beginning != best:
                return OtherBeginning(line.source, *beginning)
    raise AssertionError("all possible outputs of each line begin alike")


@pytest.fixture(scope="module")
def forced(
    toy_run: Path, other_beginning: OtherBeginning, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """The two best outputs of two lines: the first has this prefix, the second has none."""
    folder = tmp_path_factory.mktemp("forced")
    (folder / "prefixes").write_text(f"{other_beginning.token}\n\n")
    options = ("-tgt", folder / "prefixes", "-tgt_prefix", "-n_best", 2)
    return translate(toy_run, folder, f"{other_beginning.source}\nd e\n", *options)


def test_outputs_begin_with_their_prefix(
    forced: Translated, other_beginning: OtherBeginning
) -> None:
    hypotheses = forced.records[0]["hypotheses"]
    assert {hypothesis["text"].split()[0] for hypothesis in hypotheses} == {other_beginning.token}


def test_a_line_without_a_prefix_has_the_same_output(
    forced: Translated, toy_run: Path, tmp_path: Path
) -> None:
    free = translate(toy_run, tmp_path, "d e\n", "-n_best", 2)
    assert forced.lines[2:] == free.lines


def test_an_impossible_prefix_has_no_output(toy_run: Path, tmp_path: Path) -> None:
    """The model reverses its source, in which there is no f."""
    (tmp_path / "prefixes").write_text("f f f f\n")
    options = ("-tgt", tmp_path / "prefixes", "-tgt_prefix")
    translated = translate(toy_run, tmp_path, "a b c\n", *options)
    assert translated.lines == [""]
    assert translated.records[0]["hypotheses"] == []


# --- options and files that do not fit ---


@pytest.fixture
def prefixes(tmp_path: Path) -> Path:
    """A file with a prefix for the first line, and none for the second."""
    path = tmp_path / "prefixes"
    path.write_text("b\n\n")
    return path


def test_a_note_says_that_targets_without_tgt_prefix_are_unused(
    toy_run: Path, prefixes: Path, tmp_path: Path
) -> None:
    translated = translate(toy_run, tmp_path, "a b c\nd e\n", "-tgt", prefixes)
    assert "tgt (without tgt_prefix; for its prob" in translated.printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Q\n", "prefix of line 1: 'Q' is not in the target vocabulary"),
        ("a\nb\nc\n", "has 1; they must correspond"),
    ],
    ids=["unknown token", "three prefixes of one line"],
)
def test_wrong_prefixes_are_refused(
    toy_run: Path, prefixes: Path, tmp_path: Path, text: str, message: str
) -> None:
    prefixes.write_text(text)
    arguments = [*arguments_of(toy_run, tmp_path), "-tgt", prefixes, "-tgt_prefix"]
    assert message in refusal(command.main, arguments, progress=True)
