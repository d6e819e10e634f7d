"""Two processes that translate a file write what one process writes, or nothing."""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands import succeed
from tests.parallel.torchrun import Ended, run_both

LINES = 2100  # three windows of up to 1,024 lines; the last one is short
LONGEST = 3  # tokens of a line: longer ones would take longer, and show no more


def write_source(folder: Path, lines: int) -> Path:
    """Write sentences of one to `LONGEST` letters; every hundredth line is blank."""
    generator = random.Random(4)
    path = folder / "source"
    with open(path, "w", encoding="utf-8") as file:
        for number in range(lines):
            length = 0 if number % 100 == 7 else 1 + number % LONGEST
            tokens = generator.choices("abcdef", k=length)
            file.write(" ".join(tokens) + "\n")
    return path


def translate_options(trained: Path, source: Path, output: Path) -> list[object]:
    """Return options of a translation with two outputs a line and a report, `OUTPUT.jsonl`."""
    options: list[object] = ["-model", trained / "run", "-src", source, "-output", output]
    return [*options, "-beam_size", 3, "-n_best", 2, "-exactness_report", f"{output}.jsonl"]


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
        """The translation by two processes, with what both print on the standard output."""
        output = folder / "two"
        ended = run_both("translate.py", *translate_options(trained, source, output))
        assert not any(ended.statuses), ended.errors
        return Translation(output, ended.output)

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
    def failed(self, trained: Path, folder: Path) -> Ended:
        source, prefixes = write_source(folder, LINES), folder / "prefixes"
        wrong_line = 1701  # in the second window, which is the second process's
        prefixes.write_text("\n" * (wrong_line - 1) + "never\n" + "\n" * (LINES - wrong_line))
        options = translate_options(trained, source, folder / "out")
        return run_both("translate.py", *options, "-tgt", prefixes, "-tgt_prefix")

    def test_is_one_line(self, failed: Ended) -> None:
        assert failed.statuses[0] != 0
        (error,) = (line for line in failed.errors.splitlines() if "translate.py: error" in line)
        assert "prefix of line 1701: 'never' is not in the target vocabulary" in error

    def test_leaves_no_output(self, failed: object, folder: Path) -> None:
        assert not list(folder.glob("*out*"))
