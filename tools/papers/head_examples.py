"""Sentences in which a head shows what it does, for the pictures of `heads.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.checkpoint import LoadedModel
from tools.papers.corpus_measures import Measures
from tools.papers.forced_steps import Pair
from tools.papers.head_attention import attend
from tools.papers.head_choice import Head, most_varied, ranked
from tools.papers.head_maps import Shown
from tools.papers.head_measures import clusters, interrogation

READABLE = range(7, 15)  # source lengths of example sentences; if there are none, all lengths


class Examples:
    """Sentences in which heads of a model's encoder show what they do.

    Args:
        name: of the model, for titles.
        loaded: the model.
        pairs: source tokens and target ids.
    """

    def __init__(self, name: str, loaded: LoadedModel, pairs: Sequence[Pair]) -> None:
        self._name = name
        self._loaded = loaded
        self._pairs = pairs
        sources = {index: source for index, (source, _) in enumerate(pairs)}
        readable = {index: source for index, source in sources.items() if len(source) in READABLE}
        self._sources = readable or sources

    def _shown(self, head: Head, index: int, caption: str) -> Shown:
        """Return a head's attention in one sentence."""
        ((_, weights),) = attend(self._loaded, [self._pairs[index]])
        title = f"{self._name}: encoder {head.layer}.{head.head}, alpha {head.alpha:.2f}\n{caption}"
        return Shown(title, weights["encoder"][head.indices], self._pairs[index][0])

    def of_merging_and_position(self, encoder: Mapping[str, Any]) -> dict[str, list[Shown]]:
        """Return the head that merges most, and the surest of the token before, in one sentence.

        The sentence is that with the most parts of words, the first of several.
        """
        index = max(self._sources, key=self._divided_tokens)
        merging = ranked(encoder["merging"], encoder["alpha"])[0]
        positional = ranked(encoder["positional"]["-1"]["median_weight"], encoder["alpha"])[0]
        return {
            "merging": [self._shown(merging, index, f"score {merging.score:.1%}")],
            "positional": [self._shown(positional, index, f"confidence {positional.score:.1%}")],
        }

    def _divided_tokens(self, index: int) -> int:
        """Return how many tokens of a source are parts of words."""
        numbers = clusters(self._sources[index])
        return sum(numbers.count(number) > 1 for number in numbers)

    def of_interrogation(
        self, encoder: Mapping[str, Any], words: frozenset[str]
    ) -> dict[str, list[Shown]]:
        """Return the head that attends to question marks, in a question and in another sentence."""
        scores = encoder["interrogation"]["weight_on_question_mark"]
        if scores is None:
            return {}
        head = ranked(scores, encoder["alpha"])[0]
        shown = []
        for is_question, caption in ((True, "a question"), (False, "no question")):
            for index, source in self._sources.items():
                positions, ends_with_mark = interrogation(source, words)
                if positions and ends_with_mark is is_question:
                    shown.append(self._shown(head, index, caption))
                    break
        return {"interrogation": shown} if shown else {}

    def of_contrast(self, measures: Measures) -> dict[str, list[Shown]]:
        """Return one head in two sentences of equal length where its density differs most."""
        lengths = {index: len(source) for index, source in self._sources.items()}
        contrast = most_varied(measures, lengths)
        if contrast is None:
            return {}
        shown = []
        for index in (contrast.denser, contrast.sparser):
            density = measures.density[index][contrast.head.indices]
            shown.append(self._shown(contrast.head, index, f"density {density:.0%}"))
        return {"contrast": shown}
