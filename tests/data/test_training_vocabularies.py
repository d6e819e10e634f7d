"""Vocabularies of training data, and the tokens that they record for each language.

A source that begins with `lang=x` is in the language x. A vocabulary's `seen` has the tokens that
stood on its side of the pairs of each language: after a training on the pair `lang=x a`, `A`, it is
`{"lang=x": {"a"}}` for sources, and `{"lang=x": {"A"}}` for targets.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import CorpusConfig, VocabularyConfig
from onmt_entmax.data import chunks, first_reading, numbered, training
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, write_corpus

# --- two corpora of two languages ---

AT_MOST_FIVE = {"src_seq_length": 5, "tgt_seq_length": 5}  # of `filtertoolong`


@pytest.fixture(params=[1 << 30, 0], ids=["in memory", "from the files"])
def each_reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the pairs of all corpora in memory, or none, and read them in chunks of two lines."""
    monkeypatch.setattr(first_reading, "MAX_BYTES", request.param)
    monkeypatch.setattr(chunks, "LINES", 2)
    monkeypatch.setattr(numbered, "_CHUNK", 2)


@pytest.fixture
def first(tmp_path: Path) -> CorpusConfig:
    """A corpus of both languages. Its last pair is too long, and is left out."""
    sources = ["lang=x +V a b", "lang=y +V c", "lang=x d", "lang=x " + "long " * 9]
    return write_corpus(tmp_path, "one", sources, "ABCD", transforms=("filtertoolong",))


@pytest.fixture
def second(tmp_path: Path) -> CorpusConfig:
    """A corpus of one of the languages."""
    return write_corpus(tmp_path, "two", ["lang=y b a a a"], "E")


@pytest.fixture
def both(each_reading: None, first: CorpusConfig, second: CorpusConfig) -> TrainingData:
    """The training data of both corpora."""
    return TrainingData.read(
        data_config(first, second, transform_options=AT_MOST_FIVE), VocabularyConfig()
    )


def test_the_source_vocabulary_has_the_tokens_that_filters_leave(both: TrainingData) -> None:
    ordinary = both.vocabularies.source.tokens[len(SOURCE_SPECIALS) :]
    assert ordinary == ("a", "+V", "b", "lang=x", "lang=y", "c", "d")


def test_the_target_vocabulary_has_the_tokens_that_filters_leave(both: TrainingData) -> None:
    ordinary = both.vocabularies.target.tokens[len(TARGET_SPECIALS) :]
    assert ordinary == ("A", "B", "C", "E")


def test_the_source_tokens_of_each_language_are_recorded(both: TrainingData) -> None:
    assert both.vocabularies.source.seen == {"lang=x": {"+V", *"abd"}, "lang=y": {"+V", *"abc"}}


def test_the_target_tokens_of_each_language_are_recorded(both: TrainingData) -> None:
    assert both.vocabularies.target.seen == {"lang=x": {*"AC"}, "lang=y": {*"BE"}}


def test_the_data_has_the_source_tokens_that_the_vocabulary_records(both: TrainingData) -> None:
    assert both.source_tokens == both.vocabularies.source.seen


def test_a_continued_training_keeps_the_tokens_of_languages_that_its_data_lacks(
    both: TrainingData, second: CorpusConfig
) -> None:
    continued = TrainingData.read(data_config(second), VocabularyConfig(), both.vocabularies)
    seen = [side.seen for side in continued.vocabularies]
    assert seen == [side.seen for side in both.vocabularies]


@pytest.mark.usefixtures("each_reading")
def test_no_language_is_recorded_if_a_corpus_has_sources_without_one(
    first: CorpusConfig, second: CorpusConfig, tmp_path: Path
) -> None:
    plain = write_corpus(tmp_path, "three", ["a b"], "A")
    config = data_config(first, second, plain, transform_options=AT_MOST_FIVE)
    assert TrainingData.read(config, VocabularyConfig()).source_tokens == {}


@pytest.mark.usefixtures("each_reading")
def test_languages_are_recorded_if_the_first_line_is_blank(tmp_path: Path) -> None:
    """The pair of a blank line is left out."""
    corpus = write_corpus(tmp_path, "blank", ["", "lang=x a"], ["", "A"])
    config = data_config(corpus, skip_empty_level="silent")
    assert TrainingData.read(config, VocabularyConfig()).source_tokens == {"lang=x": {"a"}}


# --- continued training of a model of an earlier version ---

# Earlier versions of this package recorded the tokens of sources and not those of targets. In their
# languages, a further training does not know all target tokens, so it records none.
SEEN_SOURCES = {"lang=x": frozenset("a"), "lang=y": frozenset("a")}
EARLIER_TARGET = Vocabulary((*TARGET_SPECIALS, "A", "B"))


def after_training(
    folder: Path, seen_sources: dict[str, frozenset[str]], target: Vocabulary = EARLIER_TARGET
) -> Vocabulary:
    """Return the target vocabulary after a further training on the languages x, y and z.

    Args:
        folder: folder for its corpus.
        seen_sources: what the first training recorded of sources.
        target: the target vocabulary after the first training.
    """
    tokens = (*SOURCE_SPECIALS, "lang=x", "lang=y", "lang=z", "a")
    earlier = Vocabularies(Vocabulary(tokens, seen_sources), target)
    corpus = write_corpus(folder, "further", ["lang=x a", "lang=y a", "lang=z a"], "BAB")
    return TrainingData.read(data_config(corpus), VocabularyConfig(), earlier).vocabularies.target


def test_target_tokens_of_a_new_language_are_recorded(tmp_path: Path) -> None:
    assert after_training(tmp_path, SEEN_SOURCES).seen == {"lang=z": {"B"}}


def test_no_target_tokens_are_recorded_if_nothing_says_which_languages_are_new(
    tmp_path: Path,
) -> None:
    assert after_training(tmp_path, seen_sources={}).seen == {}


def test_target_tokens_of_both_trainings_are_recorded_if_the_first_recorded_its_own(
    tmp_path: Path,
) -> None:
    target = replace(EARLIER_TARGET, seen={"lang=x": frozenset("A"), "lang=y": frozenset("B")})
    after = after_training(tmp_path, SEEN_SOURCES, target)
    assert after.seen == {"lang=x": {*"AB"}, "lang=y": {*"AB"}, "lang=z": {"B"}}


# --- transforms ---


def test_target_tokens_are_not_recorded_if_they_are_subwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subwords that training never saw may write letters that it saw.

    A filter stands for the transform of subwords, which would need a model of its own.
    """
    monkeypatch.setattr(training, "SUBWORD_TRANSFORMS", {"filtertoolong"})
    lines = write_corpus(tmp_path, "one", ["lang=x a"], "A", transforms=("filtertoolong",))
    config = data_config(lines, transform_options=AT_MOST_FIVE)
    read = TrainingData.read(config, VocabularyConfig())
    assert read.vocabularies.source.seen == {"lang=x": {"a"}}
    assert read.vocabularies.target.seen == {}


def test_special_tokens_of_transforms_are_in_the_vocabulary(tmp_path: Path) -> None:
    masked = numbered_corpus(tmp_path, transforms=("tokenmask",))
    config = data_config(masked, transform_options={**TOKENDROP, "tokenmask_temperature": 1.0})
    read = TrainingData.read(config, VocabularyConfig())
    assert "<mask>" in read.specials.source
    assert "<mask>" in read.vocabularies.source
