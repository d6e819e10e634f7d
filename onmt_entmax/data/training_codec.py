"""Make the codec of a training, which decides what symbols of sources are copied."""

from functools import partial
from pathlib import Path

from onmt_entmax.config import DataConfig, VocabularyConfig
from onmt_entmax.data.chunks import read_chunks
from onmt_entmax.data.corpus import text_pair
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.data.vocabulary_files import read_counts
from onmt_entmax.strings.codec import Codec, frequent_symbols


def training_codec(
    config: DataConfig,
    vocabulary_config: VocabularyConfig,
    saved_vocabularies: Vocabularies | None,
) -> Codec:
    """Return the codec of the task.

    In a task that copies, the model copies the symbols that the source vocabulary lacks. This is
    the vocabulary of the checkpoint, or else that of a vocabulary file. If there is neither, the
    corpora are read, and symbols of fewer than `copy_frequency` sources are copied.

    Args:
        config: task and corpora.
        vocabulary_config: names the vocabulary files, which need not exist.
        saved_vocabularies: those of the checkpoint to continue from; None for a new model.
    """
    task, file = config.task, vocabulary_config.src_vocab
    if not task.copies:
        return Codec(task)
    if saved_vocabularies is not None:
        return Codec.of_vocabulary(task, saved_vocabularies.source)
    if file is not None and Path(file).is_file():
        return Codec.of_vocabulary(task, read_counts(file))
    return Codec(task, _frequent_source_symbols(config))


def _frequent_source_symbols(config: DataConfig) -> frozenset[str]:
    """Return the source tokens of all corpora that are frequent enough not to be copied."""
    read = partial(text_pair, data=config, is_train=True)
    pairs = (
        (text.source, text.target)
        for corpus in config.corpora
        for chunk in read_chunks(corpus, config, read)
        for text in chunk
        if text is not None
    )
    return frequent_symbols(pairs, config.task, config.copy_frequency)
