"""Networks and lines that do not fit in memory are refused in one line that names them."""

import dataclasses
import itertools
import random
import re
from pathlib import Path

import pytest
import torch

from onmt_entmax import memory
from onmt_entmax.checkpoint import save
from onmt_entmax.cli.ending import ending
from onmt_entmax.data.corpus import CorpusConfig, DataConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies, VocabularyConfig
from onmt_entmax.memory import TooLargeError, check_free, exhaustion, free_bytes, named_exhaustion
from onmt_entmax.model import build_model, count_parameters
from onmt_entmax.network import (
    RULES,
    ModelConfig,
    NetworkError,
    refuse_too_large,
    training_bytes,
    weights_of,
)
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.commands import fail
from tests.test_model import BATCH, CONFIGS, SMALL, TRANSFORMER, VOCABULARIES
from tests.toy import write_config

CPU = torch.device("cpu")


def random_configs(count: int) -> list[ModelConfig]:
    """Return small networks of all kinds."""
    generator, found = random.Random(0), []
    while len(found) < count:
        values = {}
        for name, rule in RULES.items():
            if rule.kind is bool:
                values[name] = generator.random() < 0.5
            elif rule.names:
                values[name] = generator.choice(rule.names)
            else:
                values[name] = generator.choice([1, 2, 4, 6]) if rule.kind is int else rule.low
        if values["decoder_type"] == "transformer":
            values["encoder_type"] = "transformer"
        if generator.random() < 0.6:
            values |= dict.fromkeys(("rnn_size", "src_word_vec_size", "tgt_word_vec_size"), 12)
        try:
            found.append(ModelConfig(**values))
        except NetworkError:
            continue
    return found


def test_weights_are_counted_as_they_are_built() -> None:
    target = VOCABULARIES.target
    for config in [*CONFIGS.values(), *random_configs(300)]:
        known = Vocabularies(target, target) if config.share_embeddings else VOCABULARIES
        counted = sum(weights_of(config, *map(len, known)).values())
        assert counted == count_parameters(build_model(config, known)), config


def test_a_network_that_does_not_fit_names_its_largest_part(monkeypatch) -> None:
    size = sum(weights_of(SMALL, *map(len, VOCABULARIES)).values())
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 12 * size)
    refuse_too_large(SMALL, VOCABULARIES, copies=3)
    with pytest.raises(TooLargeError, match=f"network of {size:,} weights: does not fit.* dec_la"):
        refuse_too_large(SMALL, VOCABULARIES, copies=4)
    with pytest.raises(TooLargeError, match="smaller: enc_layers and rnn_size"):
        refuse_too_large(dataclasses.replace(TRANSFORMER, enc_layers=1000), VOCABULARIES)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["-rnn_size", "1000000000"], "rnn_size: must be"),
        (["-layers", "1000000000"], "layers: must be"),
        (["-rnn_size", "1000000"], "dec_layers and rnn_size"),
        (["-word_vec_size", "1000000", "-rnn_size", "100000"], "rnn_size"),
        (["-layers", "1000", "-rnn_size", "10000"], "dec_layers and rnn_size"),
    ],
)
def test_sizes_beyond_any_memory(tmp_path: Path, flags: list[str], named: str) -> None:
    message = fail("train.py", "-config", write_config(tmp_path), *flags)
    assert named in message
    assert message.count("\n") <= 1
    assert not list((tmp_path / "run").glob("step_*"))


def test_a_long_line_of_training_is_named(tmp_path: Path) -> None:
    """Of two corpora, in an epoch that mixes them."""
    config = write_config(tmp_path, batch_size=8)
    for side in ("src", "tgt"):
        path = tmp_path / f"train.{side}"
        lines = path.read_text().splitlines()
        lines[99] = "a " * 100_000
        path.write_text("\n".join(lines) + "\n")
    message = fail("train.py", "-config", config)
    assert re.search(r"train.src, \S+train.tgt: line 100: a batch with its 100,000 source", message)
    assert "filtertoolong" in message


def test_a_long_line_of_the_development_set_is_named(tmp_path: Path) -> None:
    config = write_config(tmp_path, train_steps=1, valid_steps=1)
    for side in ("src", "tgt"):
        (tmp_path / f"valid.{side}").write_text("a b\n" + "a " * 300_000 + "\n")
    message = fail("train.py", "-config", config)
    assert "corpus 'valid': pair 2 of those that the filters keep" in message


def test_the_longest_line_is_found_in_every_epoch(tmp_path: Path, monkeypatch) -> None:
    """Of two corpora, whose lines mix and begin elsewhere in each epoch."""
    corpora = []
    for name, count in (("one", 5), ("two", 3)):
        lengths = [number + 2 * (name == "one") for number in range(1, count + 1)]
        path = tmp_path / name
        path.write_text("".join(" ".join("a" * length) + "\n" for length in lengths))
        corpora.append(CorpusConfig(name, str(path), str(path), weight=2))
    config = DataConfig(tuple(corpora), valid=None, batch_size=3)
    for most in (0, 1 << 30):  # bytes of corpora that are read once
        monkeypatch.setattr("onmt_entmax.data.training.MAX_BYTES", most)
        batches = TrainingBatches(TrainingData(config, VocabularyConfig(), VOCABULARIES))
        for batch in itertools.islice(batches, 12):
            length = int(batch.source_lengths[0])
            text = batches.longest_line([batch])
            found = re.search(r"/(\w+): line (\d+): .* its (\d+) .* and (\d+) target", text)
            assert found is not None
            assert found[4] == found[3]
            assert int(found[3]) == length == int(found[2]) + 2 * (found[1] == "one")


def test_a_long_line_of_a_translation_is_named(tmp_path: Path, monkeypatch) -> None:
    save(tmp_path / "m", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    translator = Translator.from_folders(tmp_path / "m", SearchTask(SearchConfig(max_length=2)))
    lines = ["a b", "a " * 2000, "a"]
    assert len(list(translator.answers(lines))) == 3
    monkeypatch.setattr("onmt_entmax.translator._MUCH", 0)
    with pytest.warns(UserWarning, match=r"^line 2: its 2,000 tokens need about 0.0 GB"):
        list(translator.answers(lines))
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    for method in ("beam", "enumerate"):
        translator.task = dataclasses.replace(translator.task, method=method)
        with pytest.raises(TooLargeError, match=r"^line 2: its 2,000 tokens: does not fit"):
            list(translator.answers(lines))


def test_a_batch_is_checked_before_it_is_computed(monkeypatch) -> None:
    model = build_model(SMALL, VOCABULARIES)
    needed = training_bytes(SMALL, len(BATCH), len(BATCH.source), len(BATCH.target))
    monkeypatch.setattr(memory, "_SMALL", 0)
    for free, mode in ((needed - 1, True), (needed // 4 - 1, False)):
        monkeypatch.setattr(memory, "free_bytes", lambda device, free=free: free)
        model.train(mode)
        with pytest.raises(MemoryError, match="are free"):
            model.hidden_states(BATCH)
        monkeypatch.setattr(memory, "free_bytes", lambda device, free=free: free + 1)
        model.hidden_states(BATCH)


def test_what_attention_needs_grows_with_both_lengths() -> None:
    for config in (SMALL, TRANSFORMER):
        assert training_bytes(config, 4, 200, 100) == 2 * training_bytes(config, 2, 200, 100)
        assert training_bytes(config, 1, 2000, 1000) == 100 * training_bytes(config, 1, 200, 100)
    assert training_bytes(dataclasses.replace(SMALL, global_attention="none"), 1, 99, 99) == 0


def test_errors_of_exhausted_memory_are_told_from_others() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert exhaustion(caught.value) == "needs 1,152,921,504.6 GB more"
    assert exhaustion(MemoryError()) == "an allocation failed"
    assert exhaustion(torch.OutOfMemoryError("CUDA out of memory. Tried")) == "an allocation failed"
    assert exhaustion(RuntimeError("shapes differ")) is None
    assert exhaustion(ValueError("out of memory")) is None
    found = pytest.raises(TooLargeError, match=r"^line 3: does not fit in memory \(.*\); split it$")
    with found, named_exhaustion(lambda: "line 3", "split it"):
        torch.empty(1 << 60, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="shapes"), named_exhaustion(lambda: "line 3", ""):
        raise RuntimeError("shapes differ")


def test_a_command_that_runs_out_of_memory_says_so(capsys) -> None:
    assert ending("p", lambda: torch.empty(1 << 60, dtype=torch.uint8).size(0)) == 2
    assert "p: error: this does not fit in memory (needs 1,1" in capsys.readouterr().err


def test_free_memory_is_that_of_the_smallest_group(tmp_path: Path) -> None:
    assert 0 < free_bytes(CPU) < 1 << 62
    for name, text in (
        ("memory.max", "1000\n"),
        ("memory.current", "900\n"),
        ("memory.stat", "anon 1\ninactive_file 300\n"),
    ):
        (tmp_path / name).write_text(text)
    assert list(memory._free_in_group(tmp_path, memory._V2)) == [400]
    (tmp_path / "memory.max").write_text("max\n")
    assert list(memory._free_in_group(tmp_path, memory._V2)) == []
    assert list(memory._free_in_group(tmp_path / "none", memory._V2)) == []


def test_memory_that_pytorch_keeps_on_a_gpu_is_free(monkeypatch) -> None:
    for name, value in (
        ("mem_get_info", (100, 1000)),
        ("memory_reserved", 700),
        ("memory_allocated", 300),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert free_bytes(torch.device("cuda")) == 500


def test_nothing_is_asked_for_a_small_amount(monkeypatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    check_free(1 << 20, CPU)
    with pytest.raises(MemoryError, match=r"needs 1.1 GB, 0.0 GB are free"):
        check_free(1 << 30, CPU)
