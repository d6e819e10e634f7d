"""What does not fit in memory is refused in one line that names it."""

import dataclasses
import errno
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from onmt_entmax.exhaustion import TooLargeError, check_free, exhaustion, named_exhaustion
from onmt_entmax.memory import refuse_too_large
from tests.commands import fail
from tests.models import BRNN, VOCABULARIES
from tests.toy import write_config

PRIMITIVE = "could not create a primitive"  # of oneDNN


def allocation_error() -> RuntimeError:
    """Return the error of PyTorch for a tensor that no memory can hold."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    return caught.value


def test_exhausted_memory_is_told_with_its_size() -> None:
    text = exhaustion(allocation_error())
    assert text == "does not fit in memory (needs 1,152,921,504.6 GB more)"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(MemoryError(), id="of Python"),
        pytest.param(torch.OutOfMemoryError("CUDA out of memory. Tried"), id="of a GPU"),
        pytest.param(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), id="of cuBLAS"),
        pytest.param(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), id="of cuDNN"),
        pytest.param(RuntimeError(PRIMITIVE), id="of oneDNN"),
    ],
)
def test_exhausted_memory_of_unknown_size_is_told(error: Exception) -> None:
    assert exhaustion(error) == "does not fit in memory (an allocation failed)"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("shapes differ"), id="another text"),
        pytest.param(ValueError("out of memory"), id="another class"),
    ],
)
def test_other_errors_are_no_exhausted_memory(error: Exception) -> None:
    assert exhaustion(error) is None


def test_exhausted_memory_gets_a_name_and_advice() -> None:
    line = r"^line 3: does not fit in memory \(.*\); split it$"
    with pytest.raises(TooLargeError, match=line), named_exhaustion(lambda: "line 3", "split it"):
        raise RuntimeError(PRIMITIVE)


def test_other_errors_get_no_name() -> None:
    error = RuntimeError("shapes differ")
    with pytest.raises(RuntimeError) as raised, named_exhaustion(lambda: "line 3", ""):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("meminfo", "refused"),
    [
        pytest.param("MemAvailable: 1000000 kB\nSwapFree: 900000 kB\n", True, id="too few"),
        pytest.param("MemAvailable: 1000000 kB\nSwapFree: 1100000 kB\n", False, id="with swap"),
        pytest.param("MemFree: 1000000 kB\nSwapFree: 0 kB\n", False, id="unknown"),
    ],
)
def test_memory_is_refused_if_the_system_says_that_it_is_not_free(
    meminfo: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: meminfo)
    expected = pytest.raises(MemoryError, match=r"needs 2\.0 GB, 1\.9 GB are free")
    with expected if refused else nullcontext():
        check_free(2 * 10**9, torch.device("cpu"))


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="only Linux tells its free memory")
def test_more_memory_than_the_machine_has_is_refused() -> None:
    with pytest.raises(MemoryError, match=r"needs 1,000,000,000\.0 GB, .* GB are free"):
        check_free(10**18, torch.device("cpu"))


def test_memory_is_not_refused_if_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_text(path: Path, encoding: str) -> str:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "read_text", read_text)
    check_free(10**18, torch.device("cpu"))


def test_a_network_beyond_any_memory_is_refused() -> None:
    huge = dataclasses.replace(BRNN, rnn_size=10**6)
    message = r"the network of about [\d,]+ weights: .*make rnn_size"
    with pytest.raises(TooLargeError, match=message):
        refuse_too_large(huge, VOCABULARIES)


def test_a_small_network_is_not_refused() -> None:
    refuse_too_large(BRNN, VOCABULARIES, copies=4)


@pytest.mark.parametrize(
    ("rnn_size", "message"),
    [
        pytest.param(10**6, "the network of about", id="beyond any memory"),
        pytest.param(10**9, "must be", id="beyond the option's range"),
    ],
)
def test_a_training_beyond_any_memory_is_one_line(
    tmp_path: Path, rnn_size: int, message: str
) -> None:
    line = fail("train.py", "-config", write_config(tmp_path), "-rnn_size", rnn_size)
    assert message in line
    assert not list((tmp_path / "run").glob("step_*"))


def test_a_long_line_of_training_is_named(tmp_path: Path) -> None:
    """The attention of 100,000 tokens to as many, in a batch of 8, needs more than a terabyte."""
    config = write_config(tmp_path, batch_size=8)
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        lines = path.read_text().splitlines()
        lines[99] = "a " * 100_000
        path.write_text("\n".join(lines) + "\n")
    message = fail("train.py", "-config", config)
    assert f"{tmp_path}/train.src, {tmp_path}/train.tgt: line 100: " in message
    assert "filtertoolong" in message
