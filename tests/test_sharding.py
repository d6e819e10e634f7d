"""Several processes write what one process writes, or nothing."""

import json
import random
import subprocess
from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.parallel.sharding import Windows, packed, unpacked
from onmt_entmax.report.answers import Answer, Decoded
from onmt_entmax.search import Certificate, Hypothesis, SearchResult, Verification
from tests.commands import ENVIRONMENT, succeed
from tests.test_processes import torchrun


@given(lines=st.integers(1, 200_000), count=st.integers(1, 70))
def test_every_line_is_one_process_s(lines: int, count: int) -> None:
    processes = Processes()
    processes.count = count
    windows = Windows.of(lines, processes)
    assert 1024 <= windows.size <= 4096
    assert windows.size == Windows.of(lines, Processes()).size
    owners = [
        [rank for rank in range(count) if Windows(windows.size, rank, count).has(window)]
        for window in range(-(-lines // windows.size))
    ]
    assert all(len(ranks) == 1 for ranks in owners)
    if lines >= 16 * 1024:  # there is work for sixteen, or nearly
        assert len(owners) >= 15


def write_source(folder: Path, lines: int) -> Path:
    generator = random.Random(4)
    path = folder / "source"
    with open(path, "w", encoding="utf-8") as file:
        for number in range(lines):
            words = [] if number % 100 == 7 else generator.choices("abcdef", k=1 + number % 6)
            file.write(" ".join(words) + "\n")
    return path


def arguments(trained: Path, source: Path, output: Path) -> list[object]:
    options: list[object] = ["-model", trained / "run", "-src", source, "-output", output]
    return [*options, "-beam_size", 3, "-n_best", 2, "-exactness_report", f"{output}.jsonl"]


def translate_shared(*options: object) -> subprocess.CompletedProcess[str]:
    command = torchrun(2, *options, script="translate.py")
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_a_message_may_have_all_that_an_answer_has() -> None:
    """Each class in a message must be named in `_PARTS`."""
    certificate = Certificate("none", -1.0, 0.0, 0, 0.5, 1, 0, 0.0, -3.0, False)
    best = Hypothesis((5,), -1.0, -1.0, torch.ones(1, 2))
    result = SearchResult((best,), certificate, 1, None, rows=4, support=6)
    verification = Verification(None)
    answer = Answer(3, "a", result, (Decoded("b", best),), None, (2,), verification, True)
    (again,) = unpacked(packed([answer]))
    assert again.record() == answer.record()
    assert unpacked(packed("an error")) == "an error"


def test_two_processes_write_what_one_writes(trained: Path, tmp_path: Path) -> None:
    source = write_source(tmp_path, 2100)  # three windows, of which the last is short
    one, two = tmp_path / "one", tmp_path / "two"
    printed = succeed("translate.py", *arguments(trained, source, one))
    done = translate_shared(*arguments(trained, source, two))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sentences") == 1
    assert done.stdout in printed
    assert two.read_bytes() == one.read_bytes()
    assert Path(f"{two}.jsonl").read_bytes() == Path(f"{one}.jsonl").read_bytes()
    summaries = [json.loads(Path(f"{path}.jsonl.summary.json").read_text()) for path in (one, two)]
    for summary in summaries:
        assert summary.pop("seconds") >= 0
    assert summaries[0] == summaries[1]


def test_an_error_in_another_process_is_one_line(trained: Path, tmp_path: Path) -> None:
    source = write_source(tmp_path, 2100)
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("\n" * 1700 + "never\n" + "\n" * 399)
    output = tmp_path / "out"
    options = arguments(trained, source, output)
    done = translate_shared(*options, "-tgt", prefixes, "-tgt_prefix")
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if "translate.py: error" in line]
    assert len(errors) == 1
    assert "prefix of line 1701: 'never' is not in the target vocabulary" in errors[0]
    assert not list(tmp_path.glob("*out*"))
