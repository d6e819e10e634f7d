"""Training data of a network that copies rare source symbols, or writes from right to left.

A symbol that stands in too few sources is rare: the placeholder `<copy1>` takes its place in the
source, and in the target, too, if the symbol occurs there.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import DataConfig, VocabularyConfig
from onmt_entmax.data import first_reading
from onmt_entmax.data.token_rows import TokenRows
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.strings.task import StringTask, TaskError
from onmt_entmax.strings.units import Unit
from tests.data.corpora import data_config, write_corpus

COPYING = StringTask(copies=True)


def config(folder: Path, task: StringTask = COPYING) -> DataConfig:
    """Return the configuration of a corpus of four pairs, of which only the symbol y is rare.

    Args:
        folder: folder of the corpus.
        task: whether symbols are copied, and in which direction the network writes.
    """
    sources = ["a b", "b x a", "a y x", "b a"]
    targets = ["a b", "x a x", "y a", "x b"]
    corpus = write_corpus(folder, "c", sources, targets)
    return data_config(corpus, task=task, copy_frequency=2)  # y is in one source, x in two


def pairs_of_epoch(data: TrainingData) -> list[tuple[str, str]]:
    """Return the pairs of an epoch as the network gets them, in the order of the file."""
    pairs_by_line: dict[int, tuple[str, str]] = {}
    for bucket in data.buckets(0):
        pairs, lines = bucket.read("seed")  # of random transforms, of which this corpus has none
        for line in lines.tolist():
            source = tokens_of(pairs.source, line, data.vocabularies.source)
            target = tokens_of(pairs.target, line, data.vocabularies.target)
            pairs_by_line[line] = (source, target)
    return [pair for _, pair in sorted(pairs_by_line.items())]


def tokens_of(rows: TokenRows, line: int, vocabulary: Vocabulary) -> str:
    """Return the tokens of one line, with spaces between them."""
    ids = rows.ids[rows.starts[line] : rows.starts[line + 1]]
    return " ".join(vocabulary.decode(ids.tolist()))


# --- a new model -----------------------------------------------------------------------------


@pytest.fixture(params=[1 << 30, 0], ids=["in memory", "from the file"])
def each_reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep pairs in memory, or read them from the file in each epoch."""
    monkeypatch.setattr(first_reading, "MAX_BYTES", request.param)


@pytest.mark.usefixtures("each_reading")
def test_a_rare_symbol_is_copied(tmp_path: Path) -> None:
    data = TrainingData.read(config(tmp_path), VocabularyConfig())
    assert pairs_of_epoch(data) == [
        ("a b", "a b"),
        ("b x a", "x a x"),
        ("a <copy1> x", "<copy1> a"),
        ("b a", "x b"),
    ]


def test_a_rare_symbol_that_enough_targets_add_is_not_copied(tmp_path: Path) -> None:
    """The symbol is y: one source has it, and two targets whose sources do not."""
    corpus = write_corpus(tmp_path, "c", ["a y", "a b", "b a"], ["a y", "a y", "b y"])
    added = data_config(corpus, task=COPYING, copy_frequency=2)
    data = TrainingData.read(added, VocabularyConfig())
    assert pairs_of_epoch(data) == [("a y", "a y"), ("a b", "a y"), ("b a", "b y")]


@pytest.mark.usefixtures("each_reading")
def test_a_rare_symbol_is_not_in_the_source_vocabulary(tmp_path: Path) -> None:
    """Decoding copies the symbols that the source vocabulary lacks."""
    source = TrainingData.read(config(tmp_path), VocabularyConfig()).vocabularies.source
    assert [symbol for symbol in "abxy" if symbol in source] == ["a", "b", "x"]


@pytest.mark.usefixtures("each_reading")
def test_a_network_from_right_to_left_gets_reversed_targets(tmp_path: Path) -> None:
    backwards = replace(COPYING, right_to_left=True)
    data = TrainingData.read(config(tmp_path, backwards), VocabularyConfig())
    assert pairs_of_epoch(data) == [
        ("a b", "b a"),
        ("b x a", "x a x"),
        ("a <copy1> x", "a <copy1>"),
        ("b a", "b x"),
    ]


def test_symbols_that_a_vocabulary_file_lacks_are_copied(tmp_path: Path) -> None:
    """Whatever their frequency: decoding has the vocabulary, and not the frequencies."""
    path = tmp_path / "vocabulary"
    path.write_text("a\nb\ny\n<copy1>\n", encoding="utf-8")
    data = TrainingData.read(config(tmp_path), VocabularyConfig(src_vocab=str(path)))
    assert [source for source, _ in pairs_of_epoch(data)] == [
        "a b",
        "b <copy1> a",
        "a y <copy1>",
        "b a",
    ]


# --- a model that exists ---------------------------------------------------------------------


def test_a_continued_training_copies_the_symbols_that_the_model_lacks(tmp_path: Path) -> None:
    """With its own frequencies, it would also copy x."""
    model = TrainingData.read(config(tmp_path), VocabularyConfig()).vocabularies
    further = write_corpus(tmp_path, "further", ["x z"], ["z"])
    more = data_config(further, task=COPYING, copy_frequency=9)
    data = TrainingData.read(more, VocabularyConfig(), model)
    assert pairs_of_epoch(data) == [("x <copy1>", "<copy1>")]


@pytest.fixture
def data_with_development_set(tmp_path: Path) -> TrainingData:
    """The training data, and a development set of one pair with two symbols to copy: z and y."""
    valid = write_corpus(tmp_path, "valid", ["a z y"], ["y z"])
    return TrainingData.read(replace(config(tmp_path), valid=valid), VocabularyConfig())


def test_validation_copies_as_many_symbols_as_there_are_placeholders(
    data_with_development_set: TrainingData,
) -> None:
    """A source of the training data has at most one rare symbol, so there is one placeholder."""
    (source,) = data_with_development_set.development_set().sources
    assert source.copies.symbols == {"<copy1>": "z"}
    assert source.unknown == ("y",)


def test_targets_of_validation_have_placeholders(data_with_development_set: TrainingData) -> None:
    assert data_with_development_set.development_set().targets == [["y", "<copy1>"]]


# --- data that cannot be copied --------------------------------------------------------------


def test_a_placeholder_among_the_symbols_is_refused(tmp_path: Path) -> None:
    task = replace(COPYING, source=Unit.between(" "))
    corpus = write_corpus(tmp_path, "c", ["<copy1> a"], ["a"])
    with pytest.raises(TaskError, match="<copy1> is a symbol of the data"):
        TrainingData.read(data_config(corpus, task=task, copy_frequency=2), VocabularyConfig())
