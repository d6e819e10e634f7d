"""Small corpora."""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.data.training import CorpusConfig, DataConfig, TrainingData
from onmt_entmax.data.vocabulary import VocabularyConfig

TOKENDROP = {"src_subword_type": "none", "tgt_subword_type": "none", "tokendrop_temperature": 1.0}


def written(
    folder: Path, name: str, source: Sequence[str], target: Sequence[str], **keywords: object
) -> CorpusConfig:
    paths = [folder / f"{name}.{side}" for side in ("src", "tgt")]
    for path, lines in zip(paths, (source, target), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return CorpusConfig(name, *map(str, paths), **keywords)


def corpus(
    folder: Path, name: str = "corpus_1", size: int = 50, **keywords: object
) -> CorpusConfig:
    lines = [f"{name} {' '.join('abc'[: 1 + i % 3])} {i}" for i in range(size)]
    return written(folder, name, lines, [line.upper() for line in lines], **keywords)


def data(*corpora: CorpusConfig, **keywords: object) -> DataConfig:
    settings = {"batch_size": 8, "valid": None, **keywords}
    return DataConfig(corpora=corpora, **settings)


def stream(
    config: DataConfig, position: Position | None = None, workers: int = 0
) -> TrainingBatches:
    batches = TrainingBatches(TrainingData(config, VocabularyConfig()), workers)
    batches.position = position or Position()
    return batches
