"""Measures of a model on the development set, which `Validation` takes while the model trains.

The loss is that of the right targets, by teacher forcing, on one sample of the pairs. Other
measures compare the text of outputs, which a search decodes, with the file's, on another sample.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, zip_longest
from statistics import fmean

from sacrebleu.metrics import BLEU
from torch import Tensor

from onmt_entmax.config import DECODED, ValidationConfig
from onmt_entmax.data.batch import Batch, Example, batches_by_length
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.development import Development, changed_texts, unknown_tokens
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import counted
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.report.measures import is_right
from onmt_entmax.search import ModelStepper, SearchConfig, SearchResult, beam_search
from onmt_entmax.train.calibration import calibrate, multiplied
from onmt_entmax.train.sums import Sums
from onmt_entmax.train.validation import Evaluate

_ADVICE = "make valid_batch_size smaller"  # where a batch is too large


def make_evaluate(
    data: TrainingData,
    config: ValidationConfig,
    tell: Callable[[str], None] = lambda _: None,
) -> Evaluate:
    """Return the function with which training measures a model on the development set.

    The function returns `loss` (mean per target token, without label smoothing), `token_accuracy`
    (percent) and `support` (mean nonzero outputs per token). If the selection needs decoding, it
    also returns `exact_match` and `macro_accuracy`, or `bleu`:

    - `exact_match`: percentage of sentences whose output is right.
    - `macro_accuracy`: the same, averaged over the groups of sentences with the same first source
      token: over languages, if each source begins with its language.
    - `bleu`: of the outputs.

    With `calibrate`, all are measures of the calibrated model, and `output_factor` is the number by
    which its scores are multiplied: see `calibration`.

    All three compare the text that `translate` writes with the line of the target file, so
    `evaluate` and `bleu` find the same.

    A large development set is sampled once, to `valid_loss_size` and `valid_decode_size` sentences;
    for `macro_accuracy`, evenly over first tokens.

    Args:
        data: with a development set.
        config: measures and sizes.
        tell: receives warnings: if many tokens of the development set are unknown, or if the tokens
            of some targets become other texts, which count as errors.

    Raises:
        CorpusError: no pair of the development set is left.
    """
    development = data.development_set()
    if not development.sources:
        raise CorpusError("corpus 'valid': no pair is left after transforms and filters")
    for line in unknown_tokens(development, data.vocabularies):
        tell(f"warning: corpus 'valid': {line}")
    if config.selection in DECODED:
        for line in changed_texts(development):
            tell(f"warning: corpus 'valid': {line}")
    return _Evaluation(development, data.vocabularies, config)


class _Evaluation:
    """The function that :func:`make_evaluate` returns."""

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
        states = partial(_hidden_states, model)
        pad = self._vocabularies.target.pad
        factor = calibrate(model.generator, self._forced, states, pad)
        with multiplied(model.generator, factor):
            return self._measured(model) | {"output_factor": factor}

    def _measured(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model, whose output layer is calibrated, by name."""
        values = _teacher_forced(model, self._forced, self._vocabularies.target.pad)
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


def sample_examples(examples: Sequence[Example], size: int, evenly: bool) -> Sequence[Example]:
    """Return a random sample of examples, the same one in every run.

    Args:
        examples: to choose from.
        size: how many; 0, or more than there are: all.
        evenly: equally many of each first source token; if one has too few, others give more.
    """
    if not 0 < size < len(examples):
        return examples
    if not evenly:
        return random.Random(0).sample(examples, size)
    groups: dict[int, list[Example]] = {}
    for example in random.Random(0).sample(examples, len(examples)):
        groups.setdefault(example.source[0], []).append(example)
    # Each round takes one of each group, or None from a group that has no more.
    rounds = zip_longest(*(groups[token] for token in sorted(groups)))
    in_turn = [example for example in chain.from_iterable(rounds) if example is not None]
    return in_turn[:size]


def _first_pair(batch: Batch) -> str:
    """Return which pair of the development set made a batch large, for an error."""
    return (
        f"corpus 'valid': pair {batch.indices[0] + 1} of those that the filters keep: a "
        f"batch with its {counted(len(batch.source), 'source token')}"
    )


def _teacher_forced(model: SparseNMTModel, batches: Sequence[Batch], pad: int) -> dict[str, float]:
    """Return loss, token accuracy and support of target tokens that follow the right ones.

    Args:
        model: in evaluation mode.
        batches: with targets, on the CPU.
        pad: padding id of the target, which no measure counts.
    """
    sums = Sums()
    for batch in batches:
        hidden, target = _hidden_states(model, batch)
        with named_exhaustion(partial(_first_pair, batch), _ADVICE):
            result = model.generator.loss(hidden, target, pad)
        sums.add(
            loss=float(result.loss),
            tokens=float(result.tokens),
            correct=float(result.correct),
            support=float(result.support),
        )
    return sums.averages()


def _hidden_states(model: SparseNMTModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what `SparseNMTModel.hidden_states` does.

    Raises:
        TooLargeError: the batch, which it names, does not fit in memory or the model.
    """
    with named_exhaustion(partial(_first_pair, batch), _ADVICE):
        return model.hidden_states(batch.to(device_of(model)))


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
