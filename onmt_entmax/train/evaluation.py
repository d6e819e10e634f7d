"""Measures of a model on the development set, which `Validation` takes while the model trains.

Loss, token accuracy and support measure how a model predicts the right targets
(`teacher_forcing.py`), on one sample of the pairs. Other measures compare the texts of outputs with
those of the file (`decoded_measures.py`), on another sample.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from onmt_entmax.config import DECODED, ValidationConfig
from onmt_entmax.data.batch import Batch, batches_by_length
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.development import Development, changed_text_warnings, unknown_token_warnings
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.calibration import calibrate
from onmt_entmax.train.decoded_measures import DecodedMeasures
from onmt_entmax.train.multiplied_output import multiplied
from onmt_entmax.train.sampled_examples import sample_examples
from onmt_entmax.train.teacher_forcing import hidden_states, teacher_forced_measures
from onmt_entmax.train.validation import Evaluate


def make_evaluate(
    data: TrainingData,
    config: ValidationConfig,
    tell: Callable[[str], None] = lambda _: None,
) -> Evaluate:
    """Return the function with which training measures a model on the development set.

    Args:
        data: data that has a development set.
        config: measures and sizes.
        tell: receives warnings: if many tokens of the development set are unknown, or if the tokens
            of some targets become other texts, which count as errors.

    Returns:
        An `Evaluation`.

    Raises:
        CorpusError: no pair of the development set is left.
    """
    development = data.development_set()
    if not development.sources:
        raise CorpusError("corpus 'valid': no pair is left after transforms and filters")
    for line in unknown_token_warnings(development, data.vocabularies):
        tell(f"warning: corpus 'valid': {line}")
    if config.selection in DECODED:
        for line in changed_text_warnings(development):
            tell(f"warning: corpus 'valid': {line}")
    return Evaluation(development, data.vocabularies, config)


class Evaluation:
    """Measures models on the development set.

    A call returns the measures of `teacher_forced_measures`; if the selection needs decoding, also
    those of `DecodedMeasures`.

    With `calibrate`, all are measures of the calibrated model, and `output_factor` is the number by
    which its scores are multiplied: see `calibration`.

    A large development set is sampled once, to `valid_loss_size` and `valid_decode_size` sentences;
    for `macro_accuracy`, evenly over first tokens.

    Args:
        development: the development set.
        vocabularies: the vocabularies of the models.
        config: measures and sizes.
    """

    def __init__(
        self, development: Development, vocabularies: Vocabularies, config: ValidationConfig
    ) -> None:
        self._vocabularies = vocabularies
        self._config = config
        pairs = zip(development.sources, development.targets, strict=True)
        self._examples = [
            replace(source.example, target=vocabularies.target.encode(target))
            for source, target in pairs
        ]
        self._forced = self._batches(config.valid_loss_size)
        self._decoded: DecodedMeasures | None = None
        if config.selection in DECODED:
            batches = self._batches(config.valid_decode_size)
            self._decoded = DecodedMeasures(development, vocabularies.target, batches, config)

    def _batches(self, sample_size: int) -> list[Batch]:
        """Return batches of a sample of the pairs.

        The longest come first: if these fit in memory, so do all others.

        Args:
            sample_size: number of pairs; 0: all.
        """
        evenly = self._config.selection == "macro_accuracy"
        sample = sample_examples(self._examples, sample_size, evenly)
        batch_size = self._config.valid_batch_size
        shortest_first = list(batches_by_length(sample, batch_size, self._vocabularies))
        return shortest_first[::-1]

    def __call__(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model by name."""
        if not self._config.calibrate:
            return self._measured(model)
        states = partial(hidden_states, model)
        pad = self._vocabularies.target.pad
        factor = calibrate(model.generator, self._forced, states, pad)
        with multiplied(model.generator, factor):
            return self._measured(model) | {"output_factor": factor}

    def _measured(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model as it is, by name."""
        values = teacher_forced_measures(model, self._forced, self._vocabularies.target.pad)
        return values if self._decoded is None else values | self._decoded(model)
