"""Corpora: reading, errors, and a stream of batches that can resume anywhere."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from onmt_entmax.data.corpus import (
    CorpusConfig,
    CorpusError,
    DataConfig,
    all_pairs,
    check_corpus,
    read_pairs,
    tokens_by_language,
)
from onmt_entmax.data.encoded import read_tokens
from onmt_entmax.data.stream import Position, TrainingBatches, target_frequencies
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    Vocabulary,
    VocabularyConfig,
    build_vocabularies,
    count_tokens,
)


def corpus(
    folder: Path, name: str = "corpus_1", size: int = 50, **keywords: object
) -> CorpusConfig:
    lines = [f"{name} {' '.join('abc'[: 1 + i % 3])} {i}" for i in range(size)]
    source, target = folder / f"{name}.src", folder / f"{name}.tgt"
    source.write_text("".join(line + "\n" for line in lines))
    target.write_text("".join(line.upper() + "\n" for line in lines))
    return CorpusConfig(name, str(source), str(target), **keywords)  # type: ignore[arg-type]


def data(*corpora: CorpusConfig, **keywords: object) -> DataConfig:
    return DataConfig(corpora=corpora, valid=None, batch_size=8, **keywords)  # type: ignore[arg-type]


def stream(config: DataConfig, position: Position | None = None) -> TrainingBatches:
    batches = TrainingBatches(
        config, build_vocabularies(VocabularyConfig(), lambda: count_tokens(all_pairs(config)))[0]
    )
    batches.position = position or Position()
    return batches


def test_pairs_are_the_lines_of_the_files(tmp_path: Path) -> None:
    config = corpus(tmp_path, size=3)
    pairs = list(read_pairs(config, data(config), is_train=True))
    assert pairs[1] == (["corpus_1", "a", "b", "1"], ["CORPUS_1", "A", "B", "1"])


def test_frequencies_of_what_is_predicted(tmp_path: Path) -> None:
    config = data(corpus(tmp_path, size=3))  # A 0, A B 1 and A B C 2 after the corpus's name
    vocabularies = build_vocabularies(VocabularyConfig(), lambda: count_tokens(all_pairs(config)))[
        0
    ]
    shares = target_frequencies(config, vocabularies)
    expected = {"CORPUS_1": 3, "A": 3, "B": 2, "C": 1, "0": 1, "1": 1, "2": 1, "</s>": 3}
    for token, share in zip(vocabularies.target.tokens, shares.tolist(), strict=True):
        assert share == pytest.approx(expected.get(token, 0) / 15)


def test_frequencies_are_those_of_what_training_is_given(tmp_path: Path) -> None:
    """With a corpus of weight 2 that restarts within an epoch, and tokens dropped at random."""
    hidden = {"transforms": ("tokendrop",), "weight": 2}
    corpora = [corpus(tmp_path, size=40), corpus(tmp_path, "other", size=30, **hidden)]
    options = {"tokendrop_temperature": 1.0}
    config = data(*corpora, bucket_size=32, transform_options=options)
    vocabularies = build_vocabularies(VocabularyConfig(), lambda: count_tokens(all_pairs(config)))[
        0
    ]
    batches, counts = TrainingBatches(config, vocabularies), Counter[int]()
    for batch in batches:
        counts.update(batch.target[1:].flatten().tolist())
        if batches.position.epoch:
            break
    del counts[vocabularies.target.pad]
    for token, share in enumerate(target_frequencies(config, vocabularies).tolist()):
        assert share == pytest.approx(counts[token] / counts.total())
    # 39 turns without those whose token was dropped
    assert 39 < counts[vocabularies.target.encode(["OTHER"])[0]] < 78


@pytest.mark.parametrize("bucket_size", [1000, 20, 7])
def test_an_epoch_holds_every_pair_once(tmp_path: Path, bucket_size: int) -> None:
    batches = stream(data(corpus(tmp_path), bucket_size=bucket_size))
    seen = []
    for batch in batches:
        seen += batch.indices
        if batches.position.epoch:
            break
    assert sorted(seen) == list(range(50))
    assert batches.position == Position(epoch=1)


@pytest.mark.parametrize("taken", [0, 1, 3, 7, 10, 23])
def test_a_stream_continues_at_the_exact_batch(tmp_path: Path, taken: int) -> None:
    config = data(corpus(tmp_path), bucket_size=20)
    whole = stream(config)
    list(islice(whole, taken))
    resumed = stream(config, whole.position)
    for one, other in islice(zip(whole, resumed, strict=False), 20):
        assert one.indices == other.indices
        assert one.source.equal(other.source)
        assert whole.position == resumed.position


def test_epochs_are_counted_within_them(tmp_path: Path) -> None:
    config = data(corpus(tmp_path, size=48), bucket_size=32)
    batches = stream(config)
    assert batches.epochs == 0
    shares = [batches.epochs for _ in islice(batches, 8)]
    assert shares == pytest.approx([number / 6 for number in range(1, 9)])
    resumed = stream(config, batches.position)
    assert 8 / 6 - 1e-6 < resumed.epochs <= 10 / 6  # its bucket's number of batches is unknown
    next(iter(resumed))
    assert resumed.epochs == pytest.approx(9 / 6)


def test_random_transforms_are_resumed_too(tmp_path: Path) -> None:
    options = {"src_subword_type": "none", "tgt_subword_type": "none", "tokendrop_temperature": 1.0}
    config = data(
        corpus(tmp_path, transforms=("tokendrop",)), bucket_size=20, transform_options=options
    )
    whole = stream(config)
    list(islice(whole, 9))
    resumed = stream(config, whole.position)
    random.seed(99)  # what the program draws elsewhere does not matter
    batches = list(islice(whole, 12))
    assert all(one.source.equal(other.source) for one, other in zip(batches, resumed, strict=False))
    whole_lengths = {int(n) for batch in batches for n in batch.source_lengths}
    assert min(whole_lengths) < 3, "tokendrop should have dropped something"


def test_the_seed_decides_the_order(tmp_path: Path) -> None:
    config = data(corpus(tmp_path))
    first = [batch.indices for batch in islice(stream(config), 5)]
    assert first == [batch.indices for batch in islice(stream(config), 5)]
    assert first != [batch.indices for batch in islice(stream(replace(config, seed=1)), 5)]


def test_batches_come_in_another_order_than_by_length_and_in_each_epoch(tmp_path: Path) -> None:
    batches = iter(stream(data(corpus(tmp_path, size=200))))
    one, other = (list(islice(batches, 25)) for _ in range(2))  # epochs
    lengths = [int(batch.source_lengths[0]) for batch in one]
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))
    assert [batch.indices for batch in one] != [batch.indices for batch in other]


def test_counting_draws_from_the_seed(tmp_path: Path) -> None:
    options = {"src_subword_type": "none", "tgt_subword_type": "none", "tokendrop_temperature": 1.0}
    config = data(corpus(tmp_path, transforms=("tokendrop",)), transform_options=options)
    counted = list(all_pairs(config))
    assert counted == list(all_pairs(config))
    assert counted != list(all_pairs(replace(config, seed=1)))


def test_each_side_has_its_own_prefix_and_its_own_length(tmp_path: Path) -> None:
    config = corpus(tmp_path, transforms=("prefix",), src_prefix="s", tgt_prefix="t")
    options = data(config, src_seq_length_trunc=3, tgt_seq_length_trunc=2)
    pairs = list(read_pairs(config, options, is_train=True))
    assert pairs[2] == (["s", "corpus_1", "a"], ["t", "CORPUS_1"])


def test_weights_mix_corpora(tmp_path: Path) -> None:
    small, large = corpus(tmp_path, "small", 10, weight=3), corpus(tmp_path, "large", 40)
    batches = stream(data(small, large))
    tokens = batches.vocabularies.source
    seen = []
    for batch in batches:
        seen += tokens.decode(batch.source[0, :, 0].tolist())
        if batches.position.epoch:
            break
    # An epoch ends when the large corpus has been read once, three of the small for each of it.
    assert seen.count("large") == 40
    assert abs(seen.count("small") - 120) <= 3


@pytest.mark.parametrize("level", ["silent", "warning", "error"])
def test_empty_lines(tmp_path: Path, level: str, recwarn: pytest.WarningsRecorder) -> None:
    config = corpus(tmp_path, size=4)
    Path(config.path_tgt).write_text("A\n\nC\nD\n")
    options = data(config, skip_empty_level=level)
    if level == "error":
        with pytest.raises(CorpusError, match="line 2 is empty on one side"):
            list(read_pairs(config, options, is_train=True))
        return
    assert len(list(read_pairs(config, options, is_train=True))) == 3
    assert (len(recwarn) == 1) == (level == "warning")


@pytest.mark.parametrize("marked", [("src",), ("tgt",), ("src", "tgt")])
def test_a_byte_order_mark_is_no_part_of_the_first_token(
    tmp_path: Path, marked: tuple[str, ...]
) -> None:
    """At the beginning of either file; elsewhere it is text."""
    config = corpus(tmp_path)
    for path, lines in ((config.path_src, "a b\n\ufeffc\n"), (config.path_tgt, "x\n\ufeffy\n")):
        mark = "\ufeff" if Path(path).suffix.removeprefix(".") in marked else ""
        Path(path).write_text(mark + lines, encoding="utf-8")
    pairs = list(read_pairs(config, data(config), is_train=True))
    assert pairs == [(["a", "b"], ["x"]), (["\ufeffc"], ["\ufeffy"])]


def test_files_that_do_not_correspond_are_refused(tmp_path: Path) -> None:
    config = corpus(tmp_path, size=4)
    Path(config.path_tgt).write_text("A\nB\n")
    with pytest.raises(CorpusError, match=r"has 4 lines and .* has 2"):
        check_corpus(config)
    Path(config.path_tgt).write_text("")
    Path(config.path_src).write_text("")
    with pytest.raises(CorpusError, match="is empty"):
        check_corpus(config)


def test_bytes_that_are_not_text_name_the_line(tmp_path: Path) -> None:
    config = corpus(tmp_path, size=3)
    Path(config.path_src).write_bytes(b"a\n\xff\nc\n")
    with pytest.raises(CorpusError, match="line 2 is not valid UTF-8"):
        list(read_pairs(config, data(config), is_train=True))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_filtering_everything_is_an_error(tmp_path: Path, num_workers: int) -> None:
    plain = data(corpus(tmp_path), num_workers=num_workers)
    filtered = data(
        corpus(tmp_path, transforms=("filtertoolong",)),
        transform_options={"src_seq_length": 0, "tgt_seq_length": 0},
        num_workers=num_workers,
    )
    with pytest.raises(CorpusError, match="corpus 'corpus_1': no pair is left"):
        list(all_pairs(filtered))
    with pytest.raises(CorpusError, match="no training pair is left"):
        next(iter(TrainingBatches(filtered, stream(plain).vocabularies)))


def test_what_is_seen_of_each_language(tmp_path: Path) -> None:
    def corpus_of(name: str, *sources: str) -> CorpusConfig:
        paths = [tmp_path / f"{name}.{side}" for side in ("src", "tgt")]
        for path in paths:
            path.write_text("".join(f"{line}\n" for line in sources))
        return CorpusConfig(name, *map(str, paths))

    one = corpus_of("one", "lang=x +V a b", "lang=y +V c", "lang=x d")
    two = corpus_of("two", "lang=y b")

    def seen(known: Vocabulary, *corpora: CorpusConfig) -> Mapping[str, frozenset[str]]:
        found = tokens_by_language(data(*corpora))
        assert read_tokens(data(*corpora)).by_language() == found
        return known.seeing(found).seen

    source = Vocabulary((*SOURCE_SPECIALS, "lang=x", "lang=y", "+V", *"abc"))
    both = seen(source, one, two)
    assert both == {"lang=x": {"+V", "a", "b"}, "lang=y": {"+V", "b", "c"}}
    # An earlier training is not forgotten.
    assert seen(replace(source, seen=both), two) == both
    assert seen(source, one, corpus_of("three", "a b")) == {}


@pytest.mark.parametrize(
    ("sizes", "weights", "expected"),
    [
        ((4, 4), (1, 1), (4, 4)),
        ((100, 10), (100, 10), (100, 10)),
        ((100, 10), (10, 2), (100, 18)),
        ((7, 3), (2, 1), (7, 3)),
    ],
)
def test_an_epoch_ends_with_the_last_line_of_the_longest_turn(
    tmp_path: Path, sizes: tuple, weights: tuple, expected: tuple
) -> None:
    corpora = [
        corpus(tmp_path, name, size, weight=weight)
        for name, size, weight in zip("xy", sizes, weights, strict=True)
    ]
    batches = stream(data(*corpora))
    names = batches.vocabularies.source
    seen = [0, 0]
    for batch in batches:
        first = batch.source[0, :, 0].tolist()
        seen = [n + first.count(i) for n, i in zip(seen, names.encode("xy"), strict=True)]
        if batches.position.epoch:
            break
    assert tuple(seen) == expected


def test_shorter_corpora_are_read_evenly_over_epochs(tmp_path: Path) -> None:
    """Each epoch continues where the one before stopped, also after resuming."""
    config = data(corpus(tmp_path, "long", 100, weight=2), corpus(tmp_path, "short", 32))
    whole, seen, positions = stream(config), Counter(), []
    for batch in whole:
        tokens = zip(*batch.source[:, :, 0].tolist(), strict=True)
        lines = (whole.vocabularies.source.decode(list(line)) for line in tokens)
        words = ([word for word in line if word != "<blank>"] for line in lines)
        seen.update(line[-1] for line in words if line[0] == "short")
        positions.append(whole.position)
        if whole.position.epoch == 6:
            break
    assert len(seen) == 32
    assert sum(seen.values()) == 6 * 49  # the long one has its last line in a turn of the short one
    assert max(seen.values()) - min(seen.values()) <= 1
    middle = positions[len(positions) // 2]
    again = islice(stream(config, middle), len(positions) - len(positions) // 2 - 1)
    assert [batch.indices for batch in again][-1] == batch.indices
