"""The data that a run trains on, and warnings of tokens that its vocabularies lack."""

from collections import Counter
from collections.abc import Callable, Iterator

from onmt_entmax.checkpoint import CheckpointError
from onmt_entmax.config import TrainingSetup, VocabularyConfig
from onmt_entmax.data.token_names import most_frequent
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.train.resumed import Resumed

# The share of the data's tokens that a limited vocabulary may lack without a warning.
_RARE = 0.05


def read_data(
    setup: TrainingSetup, resumed: Resumed | None, tell: Callable[[str], None]
) -> TrainingData:
    """Read corpora and vocabularies; warn of tokens that the network will read as `<unk>`.

    Args:
        setup: corpora, and files and sizes of the vocabularies of a new run.
        resumed: the checkpoint to continue from, whose vocabularies stay; None for a new run.
        tell: receives the warnings.

    Raises:
        CheckpointError: the vocabularies of the checkpoint do not fit the data.
        UserError: corpora or vocabularies cannot be read.
    """
    vocabularies = resumed.loaded.vocabularies if resumed else None
    corpora = TrainingData.read(setup.data, setup.vocabulary, vocabularies)
    _, target_counts = corpora.counts
    unknown = target_counts[UNKNOWN]
    if unknown:
        tell(
            f"warning: {unknown:,} of {counted(target_counts.total(), 'target token')} of "
            "the training data are <unk>, which the model learns to write; translate "
            "-ban_unk_token excludes it"
        )
    if resumed is not None:
        checkpoint = str(setup.run.train_from)
        _check_special_tokens(corpora, checkpoint)
        for warning in _missing_tokens(corpora, setup.vocabulary, checkpoint):
            tell(warning)
    return corpora


def _check_special_tokens(data: TrainingData, checkpoint: str) -> None:
    """Check that the vocabularies of a checkpoint have the tokens that transforms write.

    Args:
        data: has the vocabularies of the checkpoint.
        checkpoint: its name, for the message.

    Raises:
        CheckpointError: they lack one.
    """
    for specials, vocabulary in zip(data.specials, data.vocabularies, strict=True):
        for token in specials:
            if token not in vocabulary:
                raise CheckpointError(
                    f"{checkpoint}: cannot continue: a transform of the data writes "
                    f"{token!r}, which the vocabularies of that model do not have"
                )


def _missing_tokens(data: TrainingData, config: VocabularyConfig, checkpoint: str) -> Iterator[str]:
    """Yield a warning for each side whose vocabulary lacks tokens of the data.

    A limited vocabulary may lack up to `_RARE` of the data: words, but no language. Without its
    token, the model cannot tell a language from the others.

    Args:
        data: has the vocabularies of the checkpoint.
        config: limits of the vocabularies.
        checkpoint: its name, for the warnings.
    """
    sides = zip(("src", "tgt"), data.counts, data.vocabularies, strict=True)
    for side, counts, vocabulary in sides:
        missing = Counter({token: n for token, n in counts.items() if token not in vocabulary})
        are_rare = missing.total() <= _RARE * counts.total()
        if are_rare and _is_limited(side, vocabulary, config):
            languages = data.source_tokens
            missing = Counter({token: n for token, n in missing.items() if token in languages})
        if missing:
            noun = {"src": "source token", "tgt": "target token"}[side]
            yield (
                f"warning: {checkpoint} reads <unk> instead of {missing.total():,} of "
                f"{counted(counts.total(), noun)} of the training data: {most_frequent(missing)}; "
                "only a new run learns them"
            )


def _is_limited(side: str, vocabulary: Vocabulary, config: VocabularyConfig) -> bool:
    """Return whether a vocabulary may lack tokens on purpose.

    That is so if it was read from a file, has the size that the options allow, or leaves out rare
    tokens.

    Args:
        side: `src` or `tgt`.
        vocabulary: of the side.
        config: files and sizes.
    """
    if config.src_vocab or config.tgt_vocab:
        return True
    is_full = len(vocabulary) >= getattr(config, f"{side}_vocab_size")
    return is_full or getattr(config, f"{side}_words_min_frequency") > 1
