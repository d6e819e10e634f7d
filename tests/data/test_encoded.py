"""Pairs in memory give the same vocabularies and batches as the files."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from onmt_entmax.data import encoded
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.corpus import CorpusConfig, CorpusError, DataConfig, all_pairs
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import TrainingBatches, target_frequencies
from onmt_entmax.data.vocabulary import (
    Vocabularies,
    VocabularyConfig,
    build_vocabularies,
    count_tokens,
)

LINES = 23


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    """Two corpora of different weight; one has an empty line and a filter."""
    corpora = []
    for name, count, weight in (("a", LINES, 2), ("b", 7, 1)):
        for side, step in (("src", 3), ("tgt", 2)):
            text = "".join(
                " ".join(f"{side}{(n * k) % 5}" for k in range(1 + n * step % 8)) + "\n"
                for n in range(count)
            )
            (tmp_path / f"{name}.{side}").write_text(("\n" if name == "a" else "") + text)
        transforms = ("filtertoolong",) if name == "a" else ()
        paths = str(tmp_path / f"{name}.src"), str(tmp_path / f"{name}.tgt")
        corpora.append(CorpusConfig(name, *paths, weight, transforms))
    options = {"src_seq_length": 6, "tgt_seq_length": 6}
    return DataConfig(
        tuple(corpora),
        None,
        batch_size=4,
        bucket_size=11,
        skip_empty_level="silent",
        tgt_seq_length_trunc=5,
        transform_options=options,
    )


def from_text(data: DataConfig, **vocabulary: bool) -> Vocabularies:
    return build_vocabularies(
        VocabularyConfig(**vocabulary), lambda: count_tokens(all_pairs(data))
    )[0]


def in_memory(data: DataConfig, vocabularies: Vocabularies) -> encoded.EncodedPairs:
    assert encoded.covers(data)
    return encoded.read_tokens(data).encode(vocabularies)


def assert_same(first: Batch, second: Batch) -> None:
    assert first.indices == second.indices
    for name in ("source", "source_lengths", "target", "target_lengths"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name


@pytest.mark.parametrize("shared", [False, True])
def test_same_vocabularies(data: DataConfig, shared: bool) -> None:
    counts = encoded.read_tokens(data).counts
    counted = build_vocabularies(VocabularyConfig(share_vocab=shared), counts)[0]
    assert counted == from_text(data, share_vocab=shared)


@pytest.mark.parametrize("changes", [{}, {"batch_type": "tokens", "batch_size": 20}])
@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_same_batches(
    data: DataConfig, changes: dict[str, object], shapes: bool, workers: int
) -> None:
    """Over three epochs, and from every position on."""
    data = replace(data, **changes)
    vocabularies = from_text(data)
    streams = [
        TrainingBatches(replace(data, num_workers=count), vocabularies, pairs=pairs)
        for count, pairs in ((0, None), (workers, in_memory(data, vocabularies)))
    ]
    if shapes:
        for stream in streams:
            stream.shapes = Shapes(data.batch_size, data.batch_type)
    found = []
    for first, second in islice(zip(*streams, strict=True), 40):
        assert_same(first, second)
        assert streams[0].position == streams[1].position
        found.append((streams[0].position, first))
    assert streams[0].position.epoch >= 2
    for number in range(0, 30, 7):
        again = TrainingBatches(data, vocabularies, streams[1].pairs)
        again.position, again.shapes = found[number][0], streams[0].shapes
        assert_same(next(iter(again)), found[number + 1][1])


def test_same_target_frequencies(data: DataConfig) -> None:
    vocabularies = from_text(data)
    expected = target_frequencies(data, vocabularies)
    assert torch.equal(
        target_frequencies(data, vocabularies, in_memory(data, vocabularies)), expected
    )


def test_random_transforms_and_large_files_are_read_every_time(
    data: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = replace(data.corpora[0], transforms=("tokendrop",))
    assert not encoded.covers(replace(data, corpora=(corpus,)))
    monkeypatch.setattr(encoded, "MAX_BYTES", 10)
    assert not encoded.covers(data)


def test_a_corpus_without_pairs_is_named(data: DataConfig) -> None:
    tokens = encoded.read_tokens(
        replace(data, transform_options={"src_seq_length": 0, "tgt_seq_length": 0})
    )
    with pytest.raises(CorpusError, match="'a': no pair is left"):
        tokens.counts()
