"""What does not fit in memory is refused in one line that names it."""

import dataclasses
from pathlib import Path

import pytest
import torch

from onmt_entmax import errors as memory
from onmt_entmax.checkpoint import save
from onmt_entmax.errors import TooLargeError, check_free, exhaustion, named_exhaustion
from onmt_entmax.model import build_model, refuse_too_large, training_bytes
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.commands import fail
from tests.test_model import BATCH, SMALL, TRANSFORMER, VOCABULARIES
from tests.toy import write_config

CPU = torch.device("cpu")
PRIMITIVE = "could not create a primitive"  # of oneDNN


def test_errors_of_exhausted_memory_are_told_from_others() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert exhaustion(caught.value) == "needs 1,152,921,504.6 GB more"
    for error in (MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried")):
        assert exhaustion(error) == "an allocation failed"
    assert exhaustion(RuntimeError(PRIMITIVE)) == "an allocation failed"
    assert exhaustion(RuntimeError("shapes differ")) is None
    assert exhaustion(ValueError("out of memory")) is None
    line = pytest.raises(TooLargeError, match=r"^line 3: does not fit in memory \(.*\); split it$")
    with line, named_exhaustion(lambda: "line 3", "split it"):
        raise RuntimeError(PRIMITIVE)
    with pytest.raises(RuntimeError, match="shapes"), named_exhaustion(lambda: "line 3", ""):
        raise RuntimeError("shapes differ")


def test_free_memory_is_compared_on_the_machine_and_on_a_gpu(monkeypatch) -> None:
    check_free(1 << 30, CPU)
    with pytest.raises(MemoryError, match=r"needs 1,000,000.0 GB, [\d,.]+ GB are free"):
        check_free(10**15, CPU)
    gpu = {"mem_get_info": (100, 10**10), "memory_reserved": 700, "memory_allocated": 300}
    for name, value in gpu.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    monkeypatch.setattr(memory, "_SMALL", 0)
    check_free(500, torch.device("cuda"))
    with pytest.raises(MemoryError):
        check_free(501, torch.device("cuda"))


def refuse_all(needed: int, device: torch.device) -> None:
    raise MemoryError("needs more")


def test_what_attention_needs_is_checked_before_it_is_computed(monkeypatch) -> None:
    for config in (SMALL, TRANSFORMER):
        assert training_bytes(config, 4, 200, 100) == 2 * training_bytes(config, 2, 200, 100)
        assert training_bytes(config, 1, 2000, 1000) == 100 * training_bytes(config, 1, 200, 100)
    model = build_model(SMALL, VOCABULARIES)
    monkeypatch.setattr("onmt_entmax.model.check_free", refuse_all)
    with pytest.raises(MemoryError, match="needs more"):
        model.hidden_states(BATCH)


def test_sizes_beyond_any_memory(tmp_path: Path) -> None:
    with pytest.raises(
        TooLargeError, match=r"the network of about [\d,]+ weights: .*make rnn_size"
    ):
        refuse_too_large(dataclasses.replace(SMALL, rnn_size=10**6), VOCABULARIES)
    refuse_too_large(SMALL, VOCABULARIES, copies=4)
    config = write_config(tmp_path)
    for flags, said in ((["1000000"], "the network of about"), (["1000000000"], "must be")):
        message = fail("train.py", "-config", config, "-rnn_size", *flags)
        assert said in message
        assert message.count("\n") <= 1
    assert not list((tmp_path / "run").glob("step_*"))


def test_a_long_line_of_training_is_named(tmp_path: Path) -> None:
    config = write_config(tmp_path, batch_size=8)
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        lines = path.read_text().splitlines()
        lines[99] = "a " * 100_000
        path.write_text("\n".join(lines) + "\n")
    message = fail("train.py", "-config", config)
    assert "train.src" in message
    assert "filtertoolong" in message


def test_a_long_line_of_a_translation_is_named(tmp_path: Path, monkeypatch) -> None:
    save(tmp_path / "m", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    translator = Translator.from_folders(tmp_path / "m", SearchTask(SearchConfig(max_length=2)))
    monkeypatch.setattr("onmt_entmax.translator._MUCH", 0)
    lines = ["a b", "a " * 2000, "a"]
    with pytest.warns(UserWarning, match=r"^line 2: its 2,000 tokens need about 0.0 GB"):
        assert len(list(translator.answers(lines))) == 3
    monkeypatch.setattr("onmt_entmax.translator.check_free", refuse_all)
    with pytest.raises(TooLargeError, match=r"^line \d: its [\d,]+ tokens: does not fit"):
        list(translator.answers(lines))
