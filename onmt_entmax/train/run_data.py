"""The data that a run trains on."""

from collections.abc import Callable

from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import counted
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.vocabulary_checks import check_special_tokens, missing_token_warnings


def read_data(
    setup: TrainingSetup, resumed: Resumed | None, tell: Callable[[str], None]
) -> TrainingData:
    """Read corpora and vocabularies; warn of tokens that the network will not know.

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
        check_special_tokens(corpora, checkpoint)
        for warning in missing_token_warnings(corpora, setup.vocabulary, checkpoint):
            tell(f"warning: {warning}")
    return corpora
