"""Measures of a model on the development set, which `Validation` takes while the model trains.

The loss is that of the right targets, by teacher forcing, on one sample of the pairs. Other
measures compare the text of outputs, which a search decodes, with the file's, on another sample.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from sacrebleu.metrics import BLEU

from onmt_entmax.config import DECODED, ValidationConfig
from onmt_entmax.data.batch import Batch, Example, batches_by_length
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.development import Development, changed_text_warnings, unknown_token_warnings
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.report.measures import is_right
from onmt_entmax.search import ModelStepper, SearchConfig, SearchResult, beam_search
from onmt_entmax.train.calibration import calibrate
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
        data: with a development set.
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

    A call returns `loss` (mean per target token, without label smoothing), `token_accuracy`
    (percent) and `support` (mean nonzero outputs per token). If the selection needs decoding, it
    also returns `exact_match` and `macro_accuracy`, or `bleu`:

    - `exact_match`: percentage of sentences whose output is right.
    - `macro_accuracy`: the same, averaged over the groups of sentences with the same first source
      token: over languages, if each source begins with its language.
    - `bleu`: BLEU of the outputs.

    These three compare the text that `translate` writes with the line of the target file, so
    `evaluate` and `bleu` find the same.

    With `calibrate`, all are measures of the calibrated model, and `output_factor` is the number by
    which its scores are multiplied: see `calibration`.

    A large development set is sampled once, to `valid_loss_size` and `valid_decode_size` sentences;
    for `macro_accuracy`, evenly over first tokens.

    Args:
        development: the development set.
        vocabularies: of the models.
        config: measures and sizes.
    """

    def __init__(
        self, development: Development, vocabularies: Vocabularies, config: ValidationConfig
    ) -> None:
        self._development = development
        self._vocabularies = vocabularies
        self._selection = config.selection
        self._calibrates = config.calibrate
        pairs = zip(development.sources, development.targets, strict=True)
        self._examples = [
            replace(source.example, target=vocabularies.target.encode(target))
            for source, target in pairs
        ]
        self._forced = self._batches(config.valid_loss_size, config.valid_batch_size)
        self._decoded: list[Batch] = []
        if config.selection in DECODED:
            self._decoded = self._batches(config.valid_decode_size, config.valid_batch_size)
        self._search = SearchConfig(
            beam_size=config.valid_beam_size, max_length=config.max_length, stop="first"
        )
        # `force` silences a warning about tokenised text at every validation.
        self._bleu = BLEU(tokenize=config.valid_bleu_tokenize, force=True)

    def __call__(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model by name."""
        if not self._calibrates:
            return self._measured(model)
        states = partial(hidden_states, model)
        pad = self._vocabularies.target.pad
        factor = calibrate(model.generator, self._forced, states, pad)
        with multiplied(model.generator, factor):
            return self._measured(model) | {"output_factor": factor}

    def _measured(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model, whose output layer is calibrated, by name."""
        values = teacher_forced_measures(model, self._forced, self._vocabularies.target.pad)
        if not self._decoded:
            return values
        outputs, texts = self._outputs(model), self._development.texts
        if self._selection == "bleu":
            references = [texts[index] for index in outputs]
            score = self._bleu.corpus_score([*outputs.values()], [references]).score
            return values | {"bleu": score}
        right = {index: is_right(texts[index], text) for index, text in outputs.items()}
        return values | _accuracies(right, self._examples)

    def _batches(self, pairs: int, batch_size: int) -> list[Batch]:
        """Return batches of a sample of the pairs.

        The longest come first: if these fit in memory, so do all others.

        Args:
            pairs: size of the sample; 0: all.
            batch_size: sentences of a batch.
        """
        evenly = self._selection == "macro_accuracy"
        sample = sample_examples(self._examples, pairs, evenly)
        shortest_first = list(batches_by_length(sample, batch_size, self._vocabularies))
        return shortest_first[::-1]

    def _outputs(self, model: SparseNMTModel) -> dict[int, str]:
        """Return the output of each decoded pair, by its index in the development set."""
        target = self._vocabularies.target
        stepper = ModelStepper(model, target)
        results: dict[int, SearchResult] = {}
        for batch in self._decoded:
            banned = [self._development.sources[index].banned for index in batch.indices]
            batch_results = beam_search(stepper, batch, self._search, banned=banned)
            results.update(zip(batch.indices, batch_results, strict=True))
        outputs = {}
        for index, result in results.items():
            ids = () if result.best is None else result.best.tokens  # none within the length limit
            outputs[index] = self._development.text(index, target.decode(ids))
        return outputs


def _accuracies(right: Mapping[int, bool], examples: Sequence[Example]) -> dict[str, float]:
    """Return the percentage of right outputs: of all sentences, and averaged by first token.

    Args:
        right: whether the output of a sentence is right, by the index of its example.
        examples: all of the development set.
    """
    groups: dict[int, list[bool]] = {}
    for index, is_output_right in right.items():
        groups.setdefault(examples[index].source[0], []).append(is_output_right)
    return {
        "exact_match": 100 * fmean(right.values()),
        "macro_accuracy": 100 * fmean(map(fmean, groups.values())),
    }
