"""Small corpora, and the streams of batches of these."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from onmt_entmax.config import CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.corpus import build_pipe, corpus_lines, text_pair
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.data.training import TrainingData

# Options with which the transform `tokendrop` drops a token of each side at random.
TOKENDROP = {"src_subword_type": "none", "tgt_subword_type": "none", "tokendrop_temperature": 1.0}


def write_corpus(
    folder: Path, name: str, source: Sequence[str], target: Sequence[str], **keywords: object
) -> CorpusConfig:
    """Write the lines of both sides; return the configuration of the corpus.

    Args:
        folder: folder for its two files.
        name: name of the corpus, and of the files before their endings.
        source: the lines of one side.
        target: those of the other.
        keywords: further fields of `CorpusConfig`, such as `weight` and `transforms`.
    """
    paths = [folder / f"{name}.{side}" for side in ("src", "tgt")]
    for path, lines in zip(paths, (source, target), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    source_path, target_path = map(str, paths)
    return CorpusConfig(name, path_src=source_path, path_tgt=target_path, **keywords)


def numbered_corpus(
    folder: Path, name: str = "corpus_1", size: int = 50, **keywords: object
) -> CorpusConfig:
    """Write a corpus whose sources begin with its name and end with the number of the pair.

    Sources have 3 to 5 tokens; a target is its source in capitals. `keywords`: see `write_corpus`.
    """
    lines = [f"{name} {' '.join('abc'[: 1 + i % 3])} {i}" for i in range(size)]
    return write_corpus(folder, name, lines, [line.upper() for line in lines], **keywords)


def data_config(*corpora: CorpusConfig, **keywords: object) -> DataConfig:
    """Return the configuration of corpora: batches of 8 pairs, and no development set.

    Args:
        corpora: training corpora.
        keywords: further fields of `DataConfig`, or other values of these two.
    """
    settings = {"batch_size": 8, "valid": None, **keywords}
    return DataConfig(corpora=corpora, **settings)


def transformed_corpora(folder: Path, **keywords: object) -> DataConfig:
    """Write two corpora with a random transform and a filter; return their configuration.

    An epoch has more than three buckets. `keywords`: see `data_config`.
    """
    options = {**TOKENDROP, "src_seq_length": 4, "tgt_seq_length": 4}
    transforms = ("filtertoolong", "tokendrop")
    small = numbered_corpus(folder, "small", 10, weight=2, transforms=transforms)
    large = numbered_corpus(folder, "large", 40, transforms=transforms)
    return data_config(small, large, bucket_size=35, transform_options=options, **keywords)


def stream(
    config: DataConfig, position: Position | None = None, workers: int = 0
) -> TrainingBatches:
    """Return the endless stream of batches from a position on."""
    batches = TrainingBatches(TrainingData.read(config, VocabularyConfig()), workers)
    batches.position = position or Position()
    return batches


def until_epoch(batches: TrainingBatches, epoch: int = 1) -> Iterator[Batch]:
    """Yield the batches before an epoch, which are all of the first by default."""
    for batch in batches:
        yield batch
        if batches.position.epoch == epoch:
            return


def pairs_of(
    corpus: CorpusConfig, is_train: bool = True, **settings: object
) -> list[tuple[list[str], list[str]]]:
    """Return the pairs of tokens that the transforms make of a corpus and do not filter out."""
    config = data_config(corpus, **settings)
    pipe = build_pipe(corpus, config)
    pairs = (text_pair(line, pipe, config, is_train) for line in corpus_lines(corpus))
    return [pair for pair in pairs if pair is not None]


def equal_batches(one: Batch, other: Batch) -> bool:
    """Return whether two batches have the same pairs and tensors."""
    names = ("source", "source_lengths", "target", "target_lengths")
    tensors = (getattr(one, name).equal(getattr(other, name)) for name in names)
    return one.indices == other.indices and all(tensors)
