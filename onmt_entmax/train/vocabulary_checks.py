"""Whether the vocabularies of a checkpoint fit the data of a run that continues it."""

from collections import Counter
from collections.abc import Iterator

from onmt_entmax.checkpoint import CheckpointError
from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.token_names import most_frequent
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted

# The share of the data's tokens that a limited vocabulary may lack without a warning, since it is
# expected to lack rare ones.
_RARE = 0.05


def check_special_tokens(data: TrainingData, checkpoint: str) -> None:
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


def missing_token_warnings(
    data: TrainingData, config: VocabularyConfig, checkpoint: str
) -> Iterator[str]:
    """Yield a warning for each side whose vocabulary lacks tokens of the data.

    A limited vocabulary may lack up to `_RARE` of the data without a warning, but not a language:
    without its token, the model cannot tell it from the others.

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
                f"{checkpoint} reads <unk> instead of {missing.total():,} of "
                f"{counted(counts.total(), noun)} of the training data: {most_frequent(missing)}; "
                "only a new run learns them"
            )


def _is_limited(side: str, vocabulary: Vocabulary, config: VocabularyConfig) -> bool:
    """Return whether a vocabulary may lack tokens on purpose.

    That is so if it was read from a file, has the size that the options allow, or leaves out rare
    tokens.

    Args:
        side: `src` or `tgt`.
        vocabulary: the vocabulary of the side.
        config: files and sizes.
    """
    if config.src_vocab or config.tgt_vocab:
        return True
    is_full = len(vocabulary) >= getattr(config, f"{side}_vocab_size")
    return is_full or getattr(config, f"{side}_words_min_frequency") > 1
