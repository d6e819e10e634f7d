"""`onmt-entmax bleu` compares two systems by the paired bootstrap of sacrebleu's own command."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import bleu
from tests.cli.translations import their_scores, write_translations
from tests.commands import succeed
from tests.in_process import exit_status


class Bootstrap(NamedTuple):
    """What two commands print of the same paired bootstrap, system by system."""

    ours: str
    theirs: str


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Bootstrap:
    folder = tmp_path_factory.mktemp("bootstrap")
    write_translations(folder)
    command = ["onmt_entmax", "bleu", "one", "two", "--reference", "ref", "--resamples", 100]
    two_digits = ["-i", "one", "two", "-m", "bleu", "chrf", "ter", "-w", "2", "-f", "text"]
    paired = ["--paired-bs", "--paired-bs-n", "100"]
    return Bootstrap(
        ours=succeed(*command, cwd=folder), theirs=their_scores(folder, *two_digits, *paired)
    )


def test_scores_and_intervals_are_those_of_sacrebleu(bootstrap: Bootstrap) -> None:
    """Ours prints `score (mean +- half-width`, theirs `score (mean ± half-width`."""
    ours = re.findall(r"([\d.]+) \(([\d.]+) \+- ([\d.]+)", bootstrap.ours)
    theirs = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", bootstrap.theirs)
    assert ours == theirs
    assert len(ours) == 2 * 3  # three measures of two systems


def test_the_second_system_has_the_p_values_of_sacrebleu(bootstrap: Bootstrap) -> None:
    """The least p of 100 resamples is (0 + 1) / (100 + 1)."""
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("two "))
    ours = re.findall(r", p ([\d.]+)\)", row)
    assert ours == re.findall(r"\(p = ([\d.]+)\)", bootstrap.theirs) == ["0.0099"] * 3


def test_the_first_system_is_compared_with_nothing(bootstrap: Bootstrap) -> None:
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("one "))
    assert ", p " not in row


def test_equal_scores_are_not_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sacrebleu's own comparison takes equal scores for a difference, with the least p."""
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    output = Path("one").read_text()
    Path("copy").write_text(output)
    Path("capitals").write_text(output.upper())
    arguments = ["one", "copy", "capitals", "two", "--reference", "ref", "--resamples", "100"]
    assert exit_status(bleu.main, [*arguments, "--metrics", "bleu", "--lowercase"]) == 0
    p_values = dict(re.findall(r"(?m)^(\w+) .*, p ([\d.]+)\)", capsys.readouterr().out))
    assert p_values == {"copy": "1.0000", "capitals": "1.0000", "two": "0.0099"}
