"""The data of a training: corpora, batches and vocabularies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.config.conditions import HasKey
from onmt_entmax.config.declaring import COUNT, FEW, LIMIT, PATH, SIZE, TEXT, option
from onmt_entmax.config.topics import DATA, LIMITS
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS
from onmt_entmax.rules import FLAG, one_of, whole
from onmt_entmax.strings.task import TRANSLATION, StringTask

HAS_DEVELOPMENT_SET = HasKey("data", "valid")
"""Condition that there is a corpus to validate on"""

# OpenNMT-py's transforms, without those of source features, which are not supported.
TRANSFORMS = one_of(
    *(name for name in AVAILABLE_TRANSFORMS if name not in ("inferfeats", "filterfeats"))
)


@dataclass(frozen=True)
class CorpusConfig:
    """A pair of files: an entry of `data`, with its key as `name` and its values as fields."""

    name: str
    path_src: str = option(None, PATH, help="File of sources, a sentence a line.", required=True)
    path_tgt: str = option(None, PATH, help="File of targets.", required=True)
    weight: int = option(1, LIMIT, help="Examples drawn from this corpus in each round.")
    transforms: tuple[str, ...] = option((), TRANSFORMS, help="Transforms of this corpus.")
    src_prefix: str | None = option(None, TEXT, help="Source tokens of the transform prefix.")
    tgt_prefix: str | None = option(None, TEXT, help="Target tokens of the transform prefix.")


@dataclass(frozen=True)
class DataConfig:
    """All corpora and the settings of batches.

    Most attributes are options; these are not:

    Attributes:
        corpora: corpora to train on.
        valid: corpus to validate on; None if there is none.
        task: the task that the options `task`, `target_order` and `copy_frequency` describe.
        seed: seed of the order of lines and batches, and of random transforms.
        transform_options: values of all options of OpenNMT-py's transforms, by name.
    """

    corpora: tuple[CorpusConfig, ...]
    valid: CorpusConfig | None
    batch_size: int = option(64, SIZE, help="Sentences or tokens of a batch.", topic=DATA)
    batch_type: str = option(
        "sents", one_of("sents", "tokens"), help="Unit of batch_size.", topic=DATA
    )
    bucket_size: int = option(
        262144, LIMIT, help="Lines that are shuffled and sorted by length together."
    )
    num_workers: int = option(
        0, whole(0, 256), help="Processes that prefetch batches; 0: none.", topic=LIMITS
    )
    queue_size: int = option(40, FEW, help="Batches that each of num_workers may prefetch.")
    skip_empty_level: str = option(
        "warning",
        one_of("silent", "warning", "error"),
        help="What to do about a line that is empty on one side.",
    )
    src_seq_length_trunc: int | None = option(None, LIMIT, help="Cut sources to this length.")
    tgt_seq_length_trunc: int | None = option(None, LIMIT, help="Cut targets to this length.")
    copy_frequency: int = option(
        0,
        COUNT,
        help="Copy source symbols of fewer training sources by placeholders, unknown ones too, but "
        "not those that as many targets add; 0: none.",
        topic=DATA,
    )
    task: StringTask = TRANSLATION
    seed: int = 0
    transform_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VocabularyConfig:
    """Files and sizes of new vocabularies."""

    src_vocab: str | None = option(
        None,
        PATH,
        help="Source vocabulary file; written from the data if it does not exist.",
        topic=DATA,
    )
    tgt_vocab: str | None = option(
        None, PATH, help="Target vocabulary file; written if it does not exist.", topic=DATA
    )
    share_vocab: bool = option(False, FLAG, help="Share one vocabulary.", topic=DATA)
    src_vocab_size: int = option(50000, LIMIT, help="Largest source vocabulary.")
    tgt_vocab_size: int = option(50000, LIMIT, help="Largest target vocabulary.")
    src_words_min_frequency: int = option(0, COUNT, help="Leave out rarer source tokens.")
    tgt_words_min_frequency: int = option(0, COUNT, help="Leave out rarer target tokens.")
    vocab_size_multiple: int = option(1, SIZE, help="Pad vocabularies to a multiple.")
