"""The data that a run trains on, and warnings of tokens that its vocabularies lack."""

from collections import Counter
from collections.abc import Callable

from onmt_entmax.checkpoint import CheckpointError
from onmt_entmax.config import DataConfig, RunConfig, VocabularyConfig
from onmt_entmax.data.token_names import most_frequent
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.train.resumed import Resumed

# Share of the data's tokens that a limited vocabulary may lack without a warning.
_RARE = 0.05


def read_data(
    run: RunConfig,
    data: DataConfig,
    vocabulary: VocabularyConfig,
    resumed: Resumed | None,
    tell: Callable[[str], None],
) -> TrainingData:
    """Read corpora and vocabularies; warn of tokens that the network will read as `<unk>`.

    Args:
        run: names the checkpoint to continue from, for messages.
        data: corpora.
        vocabulary: files and sizes of the vocabularies of a new run.
        resumed: the checkpoint to continue from, whose vocabularies stay; None for a new run.
        tell: receives the warnings.

    Raises:
        CheckpointError: the vocabularies of the checkpoint do not fit the data.
        UserError: corpora or vocabularies cannot be read.
    """
    corpora = TrainingData.read(data, vocabulary, resumed.loaded.vocabularies if resumed else None)
    _, target_counts = corpora.counts
    unknown = target_counts[UNKNOWN]
    if unknown:
        tell(
            f"warning: {unknown:,} of {counted(target_counts.total(), 'target token')} of "
            "the training data are <unk>, which the model learns to write; translate "
            "-ban_unk_token excludes it"
        )
    if resumed is not None:
        _check_vocabularies(str(run.train_from), corpora, vocabulary, tell)
    return corpora


def _check_vocabularies(
    train_from: str,
    data: TrainingData,
    config: VocabularyConfig,
    tell: Callable[[str], None],
) -> None:
    """Check that the vocabularies of a checkpoint have the tokens of the data.

    Args:
        train_from: the checkpoint, for messages.
        data: has the vocabularies of the checkpoint.
        config: sizes, by which vocabularies lack rare tokens on purpose.
        tell: receives a warning for each side that lacks tokens: the model reads `<unk>`.

    Raises:
        CheckpointError: a transform writes a special token that they lack.
    """
    for specials, vocabulary in zip(data.specials, data.vocabularies, strict=True):
        for token in specials:
            if token not in vocabulary:
                raise CheckpointError(
                    f"{train_from}: cannot continue: a transform of the data writes "
                    f"{token!r}, which the vocabularies of that model do not have"
                )
    sides = zip(("src", "tgt"), data.counts, data.vocabularies, strict=True)
    for side, counts, vocabulary in sides:
        lacking = Counter({token: n for token, n in counts.items() if token not in vocabulary})
        on_purpose = _is_limited(side, vocabulary, config)
        if on_purpose and lacking.total() <= _RARE * counts.total():
            # Rare words are left out on purpose, but no language is: without its token, the model
            # cannot tell it from others.
            lacking = Counter(
                {token: n for token, n in lacking.items() if token in data.source_tokens}
            )
        if lacking:
            noun = {"src": "source token", "tgt": "target token"}[side]
            tell(
                f"warning: {train_from} reads <unk> instead of {lacking.total():,} of "
                f"{counted(counts.total(), noun)} of the training data: {most_frequent(lacking)}; "
                "only a new run learns them"
            )


def _is_limited(side: str, vocabulary: Vocabulary, config: VocabularyConfig) -> bool:
    """Return whether a vocabulary may lack tokens on purpose.

    It may if it was read from a file, is as large as it may be, or leaves out rare tokens.

    Args:
        side: `src` or `tgt`.
        vocabulary: of the side.
        config: files and sizes.
    """
    if config.src_vocab or config.tgt_vocab:
        return True
    is_full = len(vocabulary) >= getattr(config, f"{side}_vocab_size")
    return is_full or getattr(config, f"{side}_words_min_frequency") > 1
