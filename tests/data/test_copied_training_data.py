"""Training data of a network that copies rare symbols, or writes from right to left."""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import DataConfig, VocabularyConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.training import TrainingData
from onmt_entmax.strings.task import StringTask, TaskError
from onmt_entmax.strings.units import Unit
from tests.data.corpora import data_config, write_corpus

SOURCES = ["a b", "b x a", "a y x", "b a"]
TARGETS = ["a b", "x a x", "y a", "x b"]
TASK = StringTask(copies=True)


def config(folder: Path, task: StringTask = TASK) -> DataConfig:
    """Return the configuration of a corpus of which symbols of fewer than two sources are copied.

    Args:
        folder: folder of the corpus.
        task: whether symbols are copied, and in which direction the network writes.
    """
    return data_config(write_corpus(folder, "c", SOURCES, TARGETS), task=task, copy_frequency=2)


def pairs_of_epoch(data: TrainingData) -> list[tuple[str, str]]:
    """Return the pairs of an epoch as the network gets them, in the order of the file."""
    pairs_by_line: dict[int, tuple[str, str]] = {}
    for bucket in data.buckets(0):
        pairs, lines = bucket.read("seed")  # of random transforms, of which this corpus has none
        for line in lines.tolist():
            source, target = (
                vocabulary.decode(side.ids[side.starts[line] : side.starts[line + 1]].tolist())
                for vocabulary, side in zip(
                    data.vocabularies, (pairs.source, pairs.target), strict=True
                )
            )
            pairs_by_line[line] = " ".join(source), " ".join(target)
    return [pair for _, pair in sorted(pairs_by_line.items())]


@pytest.fixture(params=[1 << 30, 0], ids=["in memory", "from the file"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep pairs in memory, or read them from the file in each epoch."""
    monkeypatch.setattr(first_reading, "MAX_BYTES", request.param)


def test_symbols_of_few_sources_are_copied(tmp_path: Path, kept: None) -> None:
    data = TrainingData.read(config(tmp_path), VocabularyConfig())
    assert pairs_of_epoch(data) == [
        ("a b", "a b"),
        ("b x a", "x a x"),
        ("a <copy1> x", "<copy1> a"),  # y is in one source
        ("b a", "x b"),
    ]
    assert "y" not in data.vocabularies.source


def test_the_network_writes_from_right_to_left(tmp_path: Path, kept: None) -> None:
    data = TrainingData.read(
        config(tmp_path, replace(TASK, right_to_left=True)), VocabularyConfig()
    )
    assert pairs_of_epoch(data) == [
        ("a b", "b a"),
        ("b x a", "x a x"),
        ("a <copy1> x", "a <copy1>"),
        ("b a", "b x"),
    ]


def test_a_vocabulary_file_decides_what_is_copied(tmp_path: Path) -> None:
    """Decoding copies what the vocabulary lacks, so training has to do the same."""
    path = tmp_path / "vocabulary"
    path.write_text("a\nb\ny\n<copy1>\n", encoding="utf-8")
    data = TrainingData.read(config(tmp_path), VocabularyConfig(src_vocab=str(path)))
    assert [source for source, _ in pairs_of_epoch(data)] == [
        "a b",
        "b <copy1> a",
        "a y <copy1>",
        "b a",
    ]


def test_a_continued_training_copies_what_the_model_copies(tmp_path: Path) -> None:
    first = TrainingData.read(config(tmp_path), VocabularyConfig())
    (tmp_path / "other").mkdir()
    more = data_config(
        write_corpus(tmp_path / "other", "c", ["x z"], ["z"]), task=TASK, copy_frequency=9
    )
    data = TrainingData.read(more, VocabularyConfig(), first.vocabularies)
    assert pairs_of_epoch(data) == [("x <copy1>", "<copy1>")]


def test_validation_reads_what_decoding_reads(tmp_path: Path) -> None:
    development = write_corpus(tmp_path, "valid", ["a z y"], ["y z"])
    data = TrainingData.read(replace(config(tmp_path), valid=development), VocabularyConfig())
    pairs = data.development_set()
    assert pairs.targets == [["y", "<copy1>"]]
    (source,) = pairs.sources
    assert source.copies.symbols == {"<copy1>": "z"}  # y is unknown: there is one placeholder
    assert source.unknown == ("y",)


def test_a_placeholder_among_the_symbols_is_refused(tmp_path: Path) -> None:
    symbols = StringTask(source=Unit.between(" "), copies=True)
    corpora = data_config(
        write_corpus(tmp_path, "c", ["<copy1> a"], ["a"]), task=symbols, copy_frequency=2
    )
    with pytest.raises(TaskError, match="<copy1> is a symbol of the data"):
        TrainingData.read(corpora, VocabularyConfig())
