"""Several processes write what one process writes, or nothing."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.errors import UserError
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.parallel.sharding import Windows, in_order, packed, send_answers, unpacked
from onmt_entmax.report.writers import Answer, Decoded
from onmt_entmax.search import Certificate, Hypothesis, SearchResult, Verification
from tests.commands import ENVIRONMENT, succeed
from tests.test_processes import children, torchrun


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
    verification = Verification(None, "none", 0.0)
    answer = Answer(3, "a", result, (Decoded("b", best),), None, (2,), verification, True)
    (again,) = unpacked(packed([answer]))
    assert again.record() == answer.record()
    assert unpacked(packed("an error")) == "an error"


class _Post:
    """Replaces the communication between processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: dict[tuple[int, int], torch.Tensor] = {}
        self.sender = 0
        monkeypatch.setattr(torch.distributed, "isend", self.isend)
        monkeypatch.setattr(torch.distributed, "recv", self.recv)

    def isend(self, part: torch.Tensor, to: int, tag: int) -> SimpleNamespace:
        assert (to, (self.sender, tag) in self.sent) == (0, False)
        self.sent[self.sender, tag] = part
        return SimpleNamespace(wait=lambda: None)

    def recv(self, part: torch.Tensor, sender: int, tag: int) -> None:
        part.copy_(self.sent.pop((sender, tag)))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_each_process_sends_many_windows(monkeypatch, count: int, fails: bool) -> None:
    post, lines = _Post(monkeypatch), 23  # in windows of two, of which the last is short

    def of(rank: int) -> Iterator[Answer]:
        windows = Windows(2, rank, count)
        for i in filter(lambda i: windows.has(i // 2), range(lines)):
            if fails and rank == 1 and i >= 10:
                raise UserError("not text")
            yield Answer(i, f"line {i}")

    for post.sender in range(1, count):
        assert send_answers(lambda: of(post.sender)) == 0
    answers = in_order(of(0), lines, Windows(2, 0, count))
    if fails:
        with pytest.raises(UserError, match="not text"):
            list(answers)
    else:
        assert [answer.id for answer in answers] == list(range(lines))
        assert post.sent == {}


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


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@pytest.mark.slow
def test_a_killed_worker_leaves_no_output(trained: Path, tmp_path: Path) -> None:
    source = write_source(tmp_path, 30_000)
    options = arguments(trained, source, tmp_path / "out")
    command = torchrun(2, *options, script="translate.py")
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=-1, stdout=-1, text=True)
    while not list(tmp_path.glob(".out.*.tmp")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    _, printed = process.communicate(timeout=120)
    assert process.returncode != 0
    errors = [line for line in printed.splitlines() if "translate.py: error" in line]
    assert len(errors) == 1
    assert "another process of the run has died" in errors[0]
    assert not list(tmp_path.glob("*out*"))
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@pytest.mark.slow
def test_workers_end_if_torchrun_is_killed(trained: Path, tmp_path: Path) -> None:
    source = write_source(tmp_path, 30_000)
    options = arguments(trained, source, tmp_path / "out")
    command = torchrun(2, *options, script="translate.py")
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob(".out.*.tmp")):
        assert process.poll() is None
        time.sleep(0.05)
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < until, "a worker lives on"
        time.sleep(0.05)
    assert not list(tmp_path.glob("*out*"))
    assert not list(tmp_path.glob(".out*"))


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False
