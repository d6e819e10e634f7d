"""Training data: the tokens of vocabularies, and those that were seen in each language.

A source that begins with `lang=x` is of the language x. A vocabulary's `seen` maps each of these
symbols to the tokens that stood on the vocabulary's side in pairs of the language: after a training
on the pair `lang=x a`, `A`, the sources have seen `{"lang=x": {"a"}}` and the targets
`{"lang=x": {"A"}}`.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.data import chunks, first_reading, numbered, training
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, write_corpus

AT_MOST_FIVE = {"src_seq_length": 5, "tgt_seq_length": 5}  # of `filtertoolong`


class TestLanguages:
    """Languages are those of lines after filters, whether pairs are kept or read each time."""

    @pytest.fixture(params=[1 << 30, 0], ids=["in memory", "from the files"], autouse=True)
    def bytes_in_memory(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Set the size up to which corpora are kept, and read in chunks shorter than a corpus."""
        monkeypatch.setattr(first_reading, "MAX_BYTES", request.param)
        monkeypatch.setattr(chunks, "LINES", 2)
        monkeypatch.setattr(numbered, "_CHUNK", 2)

    @pytest.fixture
    def first(self, tmp_path: Path) -> CorpusConfig:
        """Two languages, one of which has a pair that is too long."""
        sources = ["lang=x +V a b", "lang=y +V c", "lang=x d", "lang=x " + "long " * 9]
        return write_corpus(tmp_path, "one", sources, "ABCD", transforms=("filtertoolong",))

    @pytest.fixture
    def second(self, tmp_path: Path) -> CorpusConfig:
        return write_corpus(tmp_path, "two", ["lang=y b a a a"], "E")

    @pytest.fixture
    def both(self, first: CorpusConfig, second: CorpusConfig) -> TrainingData:
        return TrainingData.read(
            data_config(first, second, transform_options=AT_MOST_FIVE), VocabularyConfig()
        )

    def test_tokens_are_counted_after_filters(self, both: TrainingData) -> None:
        source, target = both.vocabularies
        assert source.tokens[2:] == ("a", "+V", "b", "lang=x", "lang=y", "c", "d")
        assert target.tokens[4:] == ("A", "B", "C", "E")

    def test_tokens_of_each_language_are_recorded(self, both: TrainingData) -> None:
        assert both.source_tokens == {"lang=x": {"+V", *"abd"}, "lang=y": {"+V", *"abc"}}
        assert both.vocabularies.source.seen == both.source_tokens
        assert both.vocabularies.target.seen == {"lang=x": {*"AC"}, "lang=y": {*"BE"}}

    def test_an_earlier_training_is_not_forgotten(
        self, both: TrainingData, second: CorpusConfig
    ) -> None:
        again = TrainingData.read(data_config(second), VocabularyConfig(), both.vocabularies)
        for side, before in zip(again.vocabularies, both.vocabularies, strict=True):
            assert side.seen == before.seen

    def test_a_corpus_without_languages_leaves_none(
        self, first: CorpusConfig, second: CorpusConfig, tmp_path: Path
    ) -> None:
        plain = write_corpus(tmp_path, "three", ["a b"], "A")
        config = data_config(first, second, plain, transform_options=AT_MOST_FIVE)
        assert TrainingData.read(config, VocabularyConfig()).source_tokens == {}


class TestTargetsAfterAnEarlierTraining:
    """Targets are recorded for the languages of which every training is known.

    Models of an earlier version of this package recorded the sources of each language, not the
    targets. Of its languages, the targets after a further training would be incomplete: they are
    left out. Before (sources): x and y. After a training with x, y and z (targets): z alone.
    """

    @pytest.fixture
    def before(self, tmp_path: Path) -> Vocabularies:
        corpus = write_corpus(tmp_path, "one", ["lang=x a", "lang=y a"], "AB")
        return TrainingData.read(data_config(corpus), VocabularyConfig()).vocabularies

    @pytest.fixture
    def config(self, tmp_path: Path) -> DataConfig:
        """A second training, with another language."""
        lines = ["lang=x a", "lang=y a", "lang=z a"]
        return data_config(write_corpus(tmp_path, "two", lines, "BAB"))

    def languages_with_targets(
        self, config: DataConfig, before: Vocabularies, seen: dict[str, frozenset[str]]
    ) -> set[str]:
        """Return the languages whose targets are recorded after a training of an earlier version.

        Args:
            config: config of the second training.
            before: the vocabularies of the first training.
            seen: what its sources recorded; its targets recorded nothing.
        """
        tokens = (*before.source.tokens, "lang=z")
        earlier = Vocabularies(
            replace(before.source, tokens=tokens, seen=seen), replace(before.target, seen={})
        )
        read = TrainingData.read(config, VocabularyConfig(), earlier)
        return {*read.vocabularies.target.seen}

    def test_are_those_of_a_new_language_if_the_earlier_ones_are_known(
        self, config: DataConfig, before: Vocabularies
    ) -> None:
        seen = dict(before.source.seen)
        assert self.languages_with_targets(config, before, seen) == {"lang=z"}

    def test_are_none_if_the_earlier_languages_are_unknown(
        self, config: DataConfig, before: Vocabularies
    ) -> None:
        assert self.languages_with_targets(config, before, {}) == set()

    def test_are_those_of_both_trainings_if_both_recorded_them(
        self, config: DataConfig, before: Vocabularies
    ) -> None:
        target = TrainingData.read(config, VocabularyConfig(), before).vocabularies.target
        assert target.seen == {"lang=x": {*"AB"}, "lang=y": {*"AB"}}


def test_targets_of_subwords_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other subwords than those of training may write the same letters.

    A filter stands for a transform of subwords, which would need a model of its own.
    """
    monkeypatch.setattr(training, "SUBWORDS", {"filtertoolong"})
    lines = write_corpus(tmp_path, "one", ["lang=x a"], "A", transforms=("filtertoolong",))
    config = data_config(lines, transform_options={"src_seq_length": 9, "tgt_seq_length": 9})
    read = TrainingData.read(config, VocabularyConfig())
    assert read.source_tokens
    assert read.vocabularies.target.seen == {}


def test_special_tokens_of_transforms_are_in_the_vocabulary(tmp_path: Path) -> None:
    masked = numbered_corpus(tmp_path, transforms=("tokenmask",))
    config = data_config(masked, transform_options={**TOKENDROP, "tokenmask_temperature": 1.0})
    read = TrainingData.read(config, VocabularyConfig())
    assert "<mask>" in read.specials[0]
    assert "<mask>" in read.vocabularies.source
