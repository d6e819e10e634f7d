"""Several processes write what one process writes, or nothing."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.parallel.messages import packed, unpacked
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.parallel.sharding import Windows
from onmt_entmax.report.alignment import Alignment
from onmt_entmax.report.answers import Decoded, Drawn
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import (
    Decision,
    Hypothesis,
    Penalties,
    Sample,
    SearchResult,
    Verification,
)
from tests.commands import ENVIRONMENT, succeed
from tests.reports import certificate
from tests.torchrun import torchrun

LINES = 2100  # three windows, of which the last is short
FILE_LENGTHS = st.integers(1, 200_000)
PROCESS_COUNTS = st.integers(1, 70)


def processes(count: int) -> Processes:
    """Return the first of some processes, which are not started."""
    first = Processes()
    first.count = count
    return first


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_windows_are_large_enough_for_batches_and_small_enough_to_stream(
    lines: int, count: int
) -> None:
    assert 1024 <= Windows.of(lines, processes(count)).size <= 4096


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_windows_do_not_depend_on_the_number_of_processes(lines: int, count: int) -> None:
    assert Windows.of(lines, processes(count)).size == Windows.of(lines, processes(1)).size


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_every_window_is_of_one_process(lines: int, count: int) -> None:
    size = Windows.of(lines, processes(count)).size
    for window in range(-(-lines // size)):
        owners = [rank for rank in range(count) if Windows(size, rank, count).has(window)]
        assert len(owners) == 1


@given(lines=st.integers(16 * 1024, 200_000))
def test_a_long_file_has_work_for_fifteen_processes(lines: int) -> None:
    size = Windows.of(lines, processes(1)).size
    assert -(-lines // size) >= 15


def test_an_answer_is_the_same_after_it_was_sent() -> None:
    """With an instance of each class that an answer may hold."""
    best = Hypothesis(tokens=(5,), log_prob=-1.0, score=-1.0, attention=torch.ones(1, 2))
    alignment = Alignment(source=("a",), target=("b",), links=((0, 0, 1.0),), dense=False)
    result = SearchResult(
        hypotheses=(best,),
        certificate=certificate(level="none", log_bound=-1.0, gap=0.0, proven=0, mass=0.5),
        finished=1,
        unfinished=None,
        rows=4,
        support=6,
    )
    answer = Answer(
        id=3,
        source="a",
        result=result,
        hypotheses=(Decoded("b", best, alignment),),
        attended=(2,),
        verification=Verification(agrees=None),
        merged=True,
        penalties=Penalties("avg"),
        mbr=Decision("exact_match", ("b",), expected=(0.4,), slack=0.1, level="found"),
        samples=(Drawn("b", Sample(tokens=(5,), log_prob=-1.0, complete=True)),),
    )
    received = unpacked(packed([answer]))
    assert repr(received) == repr([answer])  # tensors have no `==` that says yes or no


def test_the_text_of_an_error_can_be_sent() -> None:
    assert unpacked(packed("an error")) == "an error"


def write_source(folder: Path, lines: int) -> Path:
    """Write sentences of letters; every hundredth line is blank."""
    generator = random.Random(4)
    path = folder / "source"
    with open(path, "w", encoding="utf-8") as file:
        for number in range(lines):
            tokens = [] if number % 100 == 7 else generator.choices("abcdef", k=1 + number % 6)
            file.write(" ".join(tokens) + "\n")
    return path


def translate_options(trained: Path, source: Path, output: Path) -> list[object]:
    """Return options of a translation with two outputs a line and a report, `OUTPUT.jsonl`."""
    options: list[object] = ["-model", trained / "run", "-src", source, "-output", output]
    return [*options, "-beam_size", 3, "-n_best", 2, "-exactness_report", f"{output}.jsonl"]


def translate_with_two_processes(*options: object) -> subprocess.CompletedProcess[str]:
    command = torchrun(2, *options, script="translate.py")
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


class Translation(NamedTuple):
    """The output of a translation, beside which its report is, and what was printed."""

    output: Path
    printed: str

    def report(self, ending: str = "") -> bytes:
        return Path(f"{self.output}.jsonl{ending}").read_bytes()

    def summary(self) -> dict[str, Any]:
        """Return the summary without the time that it took."""
        content: dict[str, Any] = json.loads(self.report(".summary.json"))
        del content["seconds"]
        return content


class TestTwoProcesses:
    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("shared")

    @pytest.fixture(scope="class")
    def source(self, folder: Path) -> Path:
        return write_source(folder, LINES)

    @pytest.fixture(scope="class")
    def alone(self, trained: Path, folder: Path, source: Path) -> Translation:
        """The translation by one process."""
        output = folder / "one"
        printed = succeed("translate.py", *translate_options(trained, source, output))
        return Translation(output, printed)

    @pytest.fixture(scope="class")
    def shared(self, trained: Path, folder: Path, source: Path) -> Translation:
        """The translation by two processes; what they print on the standard output."""
        output = folder / "two"
        done = translate_with_two_processes(*translate_options(trained, source, output))
        assert done.returncode == 0, done.stderr
        return Translation(output, done.stdout)

    def test_write_the_output_of_one(self, shared: Translation, alone: Translation) -> None:
        assert shared.output.read_bytes() == alone.output.read_bytes()

    def test_write_the_report_of_one(self, shared: Translation, alone: Translation) -> None:
        assert shared.report() == alone.report()

    def test_write_the_summary_of_one(self, shared: Translation, alone: Translation) -> None:
        assert shared.summary() == alone.summary()

    def test_print_what_one_prints_once(self, shared: Translation, alone: Translation) -> None:
        assert shared.printed.count("sentences") == 1
        assert shared.printed in alone.printed


class TestAnErrorInAnotherProcess:
    """The second of two processes meets a prefix that is not in the vocabulary."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("translations")

    @pytest.fixture(scope="class")
    def failed(self, trained: Path, folder: Path) -> subprocess.CompletedProcess[str]:
        source, prefixes = write_source(folder, LINES), folder / "prefixes"
        wrong_line = 1701  # in the second window, which is the second process's
        prefixes.write_text("\n" * (wrong_line - 1) + "never\n" + "\n" * (LINES - wrong_line))
        options = translate_options(trained, source, folder / "out")
        return translate_with_two_processes(*options, "-tgt", prefixes, "-tgt_prefix")

    def test_is_one_line(self, failed: subprocess.CompletedProcess[str]) -> None:
        assert failed.returncode != 0
        errors = [line for line in failed.stderr.splitlines() if "translate.py: error" in line]
        assert len(errors) == 1
        assert "prefix of line 1701: 'never' is not in the target vocabulary" in errors[0]

    def test_leaves_no_output(self, failed: object, folder: Path) -> None:
        assert not list(folder.glob("*out*"))
