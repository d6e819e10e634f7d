"""Training data: reading, errors, vocabularies, and a stream that can resume anywhere."""

import random
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from onmt_entmax.data import training
from onmt_entmax.data.batch import Batch, Example, Shapes, make_batch
from onmt_entmax.data.stream import Position, TrainingBatches, target_frequencies
from onmt_entmax.data.training import (
    CorpusConfig,
    CorpusError,
    DataConfig,
    TrainingData,
    build_pipe,
    count_pairs,
    pair_of,
    read_lines,
)
from onmt_entmax.data.vocabulary import Vocabularies, VocabularyConfig
from onmt_entmax.errors import UserError
from tests.data.corpora import TOKENDROP, corpus, data, stream, written


def pairs_of(corpus: CorpusConfig, is_train: bool = True, **settings: object) -> list[object]:
    config = data(corpus, **settings)
    pipe = build_pipe(corpus, config)
    pairs = (pair_of(line, pipe, config, is_train) for line in read_lines(corpus))
    return [pair for pair in pairs if pair is not None]


def epoch_of(batches: TrainingBatches, epochs: int = 1) -> list[Batch]:
    """Return the batches up to the end of an epoch."""
    taken = []
    for batch in batches:
        taken.append(batch)
        if batches.position.epoch == epochs:
            break
    return taken


def same(one: Batch, other: Batch) -> bool:
    names = ("source", "source_lengths", "target", "target_lengths")
    tensors = (getattr(one, name).equal(getattr(other, name)) for name in names)
    return one.indices == other.indices and all(tensors)


# --- lines -----------------------------------------------------------------------------------


def test_each_side_has_its_own_prefix_and_its_own_length(tmp_path: Path) -> None:
    plain = corpus(tmp_path, size=3)
    assert pairs_of(plain)[1] == (["corpus_1", "a", "b", "1"], ["CORPUS_1", "A", "B", "1"])
    prefixed = replace(plain, transforms=("prefix",), src_prefix="s", tgt_prefix="t")
    pairs = pairs_of(prefixed, src_seq_length_trunc=3, tgt_seq_length_trunc=2)
    assert pairs[2] == (["s", "corpus_1", "a"], ["t", "CORPUS_1"])


@pytest.mark.parametrize("level", ["silent", "warning", "error"])
def test_empty_lines(tmp_path: Path, level: str, recwarn: pytest.WarningsRecorder) -> None:
    empty = written(tmp_path, "x", "abcd", ["A", "", "C", "D"])
    if level == "error":
        with pytest.raises(CorpusError, match="line 2 is empty on one side"):
            pairs_of(empty, skip_empty_level=level)
        return
    assert len(pairs_of(empty, skip_empty_level=level)) == 3
    assert (len(recwarn) == 1) == (level == "warning")


@pytest.mark.parametrize("marks", [("\ufeff", ""), ("", "\ufeff")])
def test_a_byte_order_mark_is_no_part_of_the_first_token(
    tmp_path: Path, marks: tuple[str, str]
) -> None:
    """At the beginning of either file; elsewhere it is text."""
    source, target = (
        [mark + first, "\ufeff" + second]
        for mark, (first, second) in zip(marks, (("a", "c"), ("x", "y")), strict=True)
    )
    pairs = pairs_of(written(tmp_path, "x", source, target))
    assert pairs == [(["a"], ["x"]), (["\ufeffc"], ["\ufeffy"])]


def test_files_that_are_no_corpus_are_named(tmp_path: Path) -> None:
    for target, message in (("AB", "2 lines, but .* has 4"), ("", "0 lines, but .* has 4")):
        with pytest.raises(UserError, match=message):
            count_pairs(written(tmp_path, "x", "abcd", target))
    with pytest.raises(CorpusError, match="is empty"):
        count_pairs(written(tmp_path, "x", "", ""))
    bad = written(tmp_path, "x", "abc", "abc")
    Path(bad.path_src).write_bytes(b"a\n\xff\nc\n")
    with pytest.raises(UserError, match=":2: not UTF-8"):
        TrainingData(data(bad), VocabularyConfig())


# --- vocabularies ----------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_counted(tmp_path: Path, monkeypatch, kept: bool) -> None:
    """Of lines after filters, and the same whether or not pairs are kept in memory."""
    monkeypatch.setattr(training, "MAX_BYTES", 1 << 30 if kept else 0)
    monkeypatch.setattr(training, "_CHUNK", 2)
    lines = ["lang=x +V a b", "lang=y +V c", "lang=x d", "lang=x " + "long " * 9]
    one = written(tmp_path, "one", lines, "ABCD", transforms=("filtertoolong",))
    two = written(tmp_path, "two", ["lang=y b a a a"], "E")
    options = {"src_seq_length": 5, "tgt_seq_length": 5}
    config = data(one, two, transform_options=options)
    read = TrainingData(config, VocabularyConfig())
    assert read.languages == {"lang=x": {"+V", *"abd"}, "lang=y": {"+V", *"abc"}}
    source, target = read.vocabularies
    assert source.tokens[2:] == (
        "a", "+V", "b", "lang=x", "lang=y", "c", "d",
    )  # fmt: skip
    assert target.tokens[4:] == ("A", "B", "C", "E")
    assert {name: set(tokens) for name, tokens in source.seen.items()} == read.languages
    assert target.seen == {"lang=x": {*"AC"}, "lang=y": {*"BE"}}
    # An earlier training is not forgotten; a corpus without languages has none.
    again = TrainingData(data(two), VocabularyConfig(), read.vocabularies)
    assert again.vocabularies.source.seen == source.seen
    assert again.vocabularies.target.seen == target.seen
    mixed = data(one, two, written(tmp_path, "three", ["a b"], "A"), transform_options=options)
    assert TrainingData(mixed, VocabularyConfig()).languages == {}


def test_targets_are_recorded_of_whole_trainings_alone(tmp_path: Path) -> None:
    """A model of an earlier version does not say which targets a language had before."""
    one = data(written(tmp_path, "one", ["lang=x a", "lang=y a"], "AB"))
    before = TrainingData(one, VocabularyConfig()).vocabularies
    lines = ["lang=x a", "lang=y a", "lang=z a"]
    two = data(written(tmp_path, "two", lines, "BAB"))
    source = before.source.tokens
    for seen, languages in (
        (before.source.seen, {"lang=z"}),
        ({}, set()),  # nothing tells what the earlier training had
    ):
        earlier = Vocabularies(
            replace(before.source, tokens=(*source, "lang=z"), seen=seen),
            replace(before.target, seen={}),
        )
        target = TrainingData(two, VocabularyConfig(), earlier).vocabularies.target
        assert target.seen.keys() == languages
    continued = TrainingData(two, VocabularyConfig(), before).vocabularies.target
    assert continued.seen == {"lang=x": {*"AB"}, "lang=y": {*"AB"}}


def test_subwords_of_a_language_are_not_all_that_write_its_letters(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(training, "SUBWORDS", {"filtertoolong"})
    lines = written(tmp_path, "one", ["lang=x a"], "A", transforms=("filtertoolong",))
    config = data(lines, transform_options={"src_seq_length": 9, "tgt_seq_length": 9})
    read = TrainingData(config, VocabularyConfig())
    assert read.languages
    assert read.vocabularies.target.seen == {}


def test_special_tokens_of_transforms_are_in_the_vocabulary(tmp_path: Path) -> None:
    masked = corpus(tmp_path, transforms=("tokenmask",))
    config = data(masked, transform_options={**TOKENDROP, "tokenmask_temperature": 1.0})
    read = TrainingData(config, VocabularyConfig())
    assert "<mask>" in read.specials[0]
    assert "<mask>" in read.vocabularies.source


@pytest.mark.parametrize("workers", [0, 2])
def test_filtering_everything_is_an_error(tmp_path: Path, workers: int) -> None:
    plain = TrainingData(data(corpus(tmp_path)), VocabularyConfig())
    filtered = corpus(tmp_path, transforms=("filtertoolong",))
    config = data(filtered, transform_options={"src_seq_length": 0, "tgt_seq_length": 0})
    with pytest.raises(CorpusError, match="corpus 'corpus_1': no pair is left"):
        TrainingData(config, VocabularyConfig())
    random_too = replace(filtered, transforms=("filtertoolong", "tokendrop"))
    config = data(random_too, transform_options={**config.transform_options, **TOKENDROP})
    with pytest.raises(CorpusError, match="no training pair is left"):
        next(
            iter(
                TrainingBatches(
                    TrainingData(config, VocabularyConfig(), plain.vocabularies), workers
                )
            )
        )


# --- the stream ------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> DataConfig:
    """Two corpora of different weight; one has an empty line and a filter."""
    corpora = []
    for name, count, weight in (("a", 23, 2), ("b", 7, 1)):
        source, target = (
            [
                " ".join(f"{side}{(n * k) % 5}" for k in range(1 + n * step % 8))
                for n in range(count)
            ]
            for side, step in (("src", 3), ("tgt", 2))
        )
        transforms = ("filtertoolong",) if name == "a" else ()
        first = [""] if name == "a" else []
        corpora.append(
            written(tmp_path, name, first + source, first + target, weight=weight,
                    transforms=transforms)
        )  # fmt: skip
    return data(
        *corpora,
        batch_size=4,
        bucket_size=11,
        skip_empty_level="silent",
        tgt_seq_length_trunc=5,
        transform_options={"src_seq_length": 6, "tgt_seq_length": 6},
    )


@pytest.mark.parametrize("changes", [{}, {"batch_type": "tokens", "batch_size": 20}])
@pytest.mark.parametrize("padded", [False, True])
def test_pairs_in_memory_give_the_batches_of_the_files(
    mixed: DataConfig, monkeypatch, changes: dict[str, object], padded: bool
) -> None:
    """Over three epochs, and from every position on."""
    config = replace(mixed, **changes)
    kept = stream(config)
    monkeypatch.setattr(training, "MAX_BYTES", 0)
    read = stream(config)
    assert kept.data.vocabularies == read.data.vocabularies
    if padded:
        kept.shapes = read.shapes = Shapes(config.batch_size, config.batch_type)
    seen = []
    for one, other in islice(zip(kept, read, strict=True), 40):
        assert same(one, other)
        assert kept.position == read.position
        seen.append((kept.position, one))
    assert kept.position.epoch >= 2
    for number in range(0, 30, 7):
        for batches in (kept, read):
            batches.position = seen[number][0]
            assert same(next(iter(batches)), seen[number + 1][1])
    assert target_frequencies(kept.data).equal(target_frequencies(read.data))


@pytest.mark.parametrize("bucket_size", [1000, 20, 7])
def test_an_epoch_holds_every_pair_once(tmp_path: Path, bucket_size: int) -> None:
    plain, indices = corpus(tmp_path), []
    batches = stream(data(plain, bucket_size=bucket_size))
    known, pairs = batches.data.vocabularies, pairs_of(plain)
    for batch in epoch_of(batches):
        examples = [
            Example(
                *(side.encode(part) for side, part in zip(known, pairs[index], strict=True)), index
            )
            for index in batch.indices
        ]
        assert same(batch, make_batch(examples, known))
        indices += batch.indices
    assert sorted(indices) == list(range(50))
    assert batches.position == Position(epoch=1)


@pytest.mark.parametrize("taken", [0, 3, 23])
@pytest.mark.parametrize("transforms", [(), ("tokendrop",)])
def test_a_stream_continues_at_the_exact_batch(
    tmp_path: Path, taken: int, transforms: tuple[str, ...]
) -> None:
    plain = corpus(tmp_path, transforms=transforms)
    config = data(plain, bucket_size=20, transform_options=TOKENDROP)
    whole = stream(config)
    going_on = iter(whole)
    list(islice(going_on, taken))
    resumed = stream(config, whole.position)
    random.seed(99)  # what the program draws elsewhere does not matter
    lengths = set()
    for one, other in islice(zip(going_on, resumed, strict=False), 20):
        assert same(one, other)
        assert whole.position == resumed.position
        lengths.update(one.source_lengths.tolist())
    assert (min(lengths) < 3) == bool(transforms), "something should have been dropped"


def test_epochs_are_counted_within_them(tmp_path: Path) -> None:
    batches = stream(data(corpus(tmp_path, size=48), bucket_size=32))
    assert batches.epochs == 0
    shares = [batches.epochs for _ in islice(batches, 8)]
    assert shares == pytest.approx([number / 6 for number in range(1, 9)])
    resumed = stream(batches.data.config, batches.position)
    assert 8 / 6 - 1e-6 < resumed.epochs <= 10 / 6  # its bucket's number of batches is unknown
    next(iter(resumed))
    assert resumed.epochs == pytest.approx(9 / 6)


def test_the_seed_decides_the_order(tmp_path: Path) -> None:
    config = data(corpus(tmp_path, size=200))
    one, other = (list(islice(iter(stream(config)), 25)) for _ in range(2))
    assert all(map(same, one, other))
    lengths = [int(batch.source_lengths[0]) for batch in one]
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))
    indices = [batch.indices for batch in one]
    assert indices != [batch.indices for batch in islice(stream(config, Position(1)), 25)]
    assert indices != [batch.indices for batch in islice(stream(replace(config, seed=1)), 25)]


@pytest.mark.parametrize(
    ("sizes", "weights", "expected"),
    [
        ((4, 4), (1, 1), (4, 4)),
        ((100, 10), (100, 10), (100, 10)),
        ((100, 10), (10, 2), (100, 18)),
        ((7, 3), (2, 1), (7, 3)),
        ((10, 40), (3, 1), (120, 40)),
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
    names = batches.data.vocabularies.source.encode("xy")
    firsts = Counter(
        first for batch in epoch_of(batches) for first in batch.source[0, :, 0].tolist()
    )
    assert tuple(firsts[name] for name in names) == expected


def test_shorter_corpora_are_read_evenly_over_epochs(tmp_path: Path) -> None:
    """Each epoch continues where the one before stopped."""
    config = data(corpus(tmp_path, "long", 100, weight=2), corpus(tmp_path, "short", 32))
    whole, seen = stream(config), Counter[str]()
    words = whole.data.vocabularies.source
    for batch in epoch_of(whole, 6):
        for ids, length in zip(
            batch.source[:, :, 0].t().tolist(), batch.source_lengths, strict=True
        ):
            first, *_, last = words.decode(ids[: int(length)])
            seen.update([last] if first == "short" else [])
    assert len(seen) == 32
    assert sum(seen.values()) == 6 * 49  # the long one has its last line in a turn of the short one
    assert max(seen.values()) - min(seen.values()) <= 1


def test_frequencies_are_those_of_what_training_is_given(tmp_path: Path) -> None:
    """With a corpus of weight 2 that restarts within an epoch, and tokens dropped at random."""
    hidden = corpus(tmp_path, "other", size=30, transforms=("tokendrop",), weight=2)
    config = data(corpus(tmp_path, size=40), hidden, bucket_size=32, transform_options=TOKENDROP)
    batches, counts = stream(config), Counter[int]()
    for batch in epoch_of(batches):
        counts.update(batch.target[1:].flatten().tolist())
    target = batches.data.vocabularies.target
    del counts[target.pad]
    for token, share in enumerate(target_frequencies(batches.data).tolist()):
        assert share == pytest.approx(counts[token] / counts.total())
    assert counts[target.bos] == 0
    # 39 turns without those whose token was dropped
    assert 39 < counts[target.encode(["OTHER"])[0]] < 78


# --- sampled subwords ------------------------------------------------------------------------

TEXT = "abcabc cabcab bacbac aabbcc abc bca"


def subwords(folder: Path, transform: str, **options: object) -> DataConfig:
    """Return a corpus of sixty equal lines; the subword model is `model` in the folder."""
    sides = {f"{side}_subword_model": str(folder / "model") for side in ("src", "tgt")}
    sides |= {"src_subword_vocab": "", "tgt_subword_vocab": "", "share_vocab": False}
    sides |= {"src_vocab_threshold": 0, "tgt_vocab_threshold": 0, **options}
    text = written(folder, "text", [TEXT] * 60, [TEXT] * 60, transforms=(transform,))
    return data(text, bucket_size=25, transform_options=sides)


def test_merges_are_left_out_by_the_seed_in_training_alone(tmp_path: Path, pyonmttok) -> None:
    """BPE of pyonmttok with dropout, whoever reads from wherever."""
    (tmp_path / "bpe.text").write_text(f"{TEXT}\n" * 50)
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("space"), symbols=6)
    learner.ingest_file(str(tmp_path / "bpe.text"))
    learner.learn(str(tmp_path / "model"))
    words = "{'mode': 'space', 'joiner_annotate': True}"
    sides = [{f"{side}_subword_type": "bpe", f"{side}_subword_alpha": 0.3,
              f"{side}_subword_nbest": 1, f"{side}_onmttok_kwargs": words}
             for side in ("src", "tgt")]  # fmt: skip
    config = subwords(tmp_path, "onmt_tokenize", **sides[0], **sides[1])
    whole = stream(config)
    batches, middle = list(islice(whole, 7)), whole.position
    batches += islice(whole, 13)
    assert len({str(batch.source.tolist()) for batch in batches}) == 20, "nothing was left out"
    assert all(map(same, islice(stream(config, middle), 13), batches[7:]))
    assert all(map(same, islice(stream(config, workers=2), 20), batches))
    other = islice(stream(replace(config, seed=5)), 20)
    assert not all(map(same, other, batches))
    plain = pairs_of(config.corpora[0], False, transform_options=config.transform_options)
    assert len({str(pair) for pair in plain}) == 1


# --- shapes ----------------------------------------------------------------------------------


def test_shapes_are_few_and_hold_all() -> None:
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(1, 31, (500,), generator=generator).numpy()
    target = torch.randint(0, 21, (500,), generator=generator).numpy()
    # A wider shape holds fewer sentences of as many tokens: a group that is carried may stay short.
    for shapes, most_short in ((Shapes(32), 1), (Shapes(600, "tokens"), 5)):
        groups = shapes.group_lengths(source, target)
        assert sorted(place for group in groups for place in group) == list(range(500))
        used = [
            (shapes.of_lengths(int(source[group].max()), int(target[group].max()) + 1), len(group))
            for group in groups
        ]
        assert all(size <= shape.sentences for shape, size in used)
        assert all(shape.source % 8 == shape.target % 4 == 0 for shape, _ in used)
        assert sum(size < shape.sentences for shape, size in used) <= most_short
        assert len({shape for shape, _ in used}) <= 4 * 6 + 1
