"""Measures of a model's outputs on the development set: accuracies, or BLEU."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from sacrebleu.metrics import BLEU

from onmt_entmax.config import ValidationConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.development import Development
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.report.measures import is_right
from onmt_entmax.search import ModelStepper, SearchConfig, SearchResult, beam_search


class DecodedMeasures:
    """Decodes sources of the development set, and compares the outputs with the targets.

    A call returns `bleu` if that is the selection, otherwise both accuracies:

    - `exact_match`: percentage of sentences whose output is right.
    - `macro_accuracy`: the same, averaged over the groups of sentences with the same first source
      token: over languages, if each source begins with its language.
    - `bleu`: BLEU of the outputs.

    All compare the text that `translate` writes with the line of the target file, as the commands
    `evaluate` and `bleu` do.

    Args:
        development: the development set.
        target: the target vocabulary.
        batches: the sources to decode; `indices` are their places in the development set.
        config: the measure, and the options of the search.
    """

    def __init__(
        self,
        development: Development,
        target: Vocabulary,
        batches: Sequence[Batch],
        config: ValidationConfig,
    ) -> None:
        self._development = development
        self._target = target
        self._batches = batches
        self._selection = config.selection
        self._search = SearchConfig(
            beam_size=config.valid_beam_size, max_length=config.max_length, stop="first"
        )
        # `force` silences a warning about tokenised text at every validation.
        self._bleu = BLEU(tokenize=config.valid_bleu_tokenize, force=True)

    def __call__(self, model: SparseNMTModel) -> dict[str, float]:
        """Return the measures of a model, in evaluation mode, by name."""
        outputs, texts = self._outputs(model), self._development.texts
        if self._selection == "bleu":
            references = [texts[index] for index in outputs]
            return {"bleu": self._bleu.corpus_score([*outputs.values()], [references]).score}
        right = {index: is_right(texts[index], text) for index, text in outputs.items()}
        return self._accuracies(right)

    def _outputs(self, model: SparseNMTModel) -> dict[int, str]:
        """Return the output for each source, by its index in the development set."""
        stepper = ModelStepper(model, self._target)
        results: dict[int, SearchResult] = {}
        for batch in self._batches:
            banned = [self._development.sources[index].banned for index in batch.indices]
            batch_results = beam_search(stepper, batch, self._search, banned=banned)
            results.update(zip(batch.indices, batch_results, strict=True))
        outputs = {}
        for index, result in results.items():
            ids = () if result.best is None else result.best.tokens  # none within the length limit
            outputs[index] = self._development.text(index, self._target.decode(ids))
        return outputs

    def _accuracies(self, right: Mapping[int, bool]) -> dict[str, float]:
        """Return the percentage of right outputs: of all sentences, and averaged by first token.

        Args:
            right: whether the output is right, by the index of the sentence.
        """
        groups: dict[int, list[bool]] = {}
        for index, is_output_right in right.items():
            first_token = self._development.sources[index].example.source[0]
            groups.setdefault(first_token, []).append(is_output_right)
        return {
            "exact_match": 100 * fmean(right.values()),
            "macro_accuracy": 100 * fmean(map(fmean, groups.values())),
        }
