"""Sentences in which a head shows what it does, for the pictures of `heads.py`."""

from __future__ import annotations

from collections.abc import Sequence

from onmt_entmax.checkpoint import LoadedModel
from tools.papers.corpus_measures import Measures
from tools.papers.forced_steps import Pair
from tools.papers.head_attention import Floats, attend
from tools.papers.head_choice import Head, most_varied, ranked, ranked_at
from tools.papers.head_maps import HeadMap
from tools.papers.head_summary import EncoderSummary
from tools.papers.head_tokens import clusters, divided_positions, interrogation

READABLE = range(7, 15)  # source lengths of example sentences; if there are none, all lengths


class Examples:
    """Attention maps of a model's encoder heads, in sentences that show what these heads do.

    Args:
        name: name of the model, for titles.
        loaded: the model.
        pairs: source tokens and target ids; one source at least has several tokens.
    """

    def __init__(self, name: str, loaded: LoadedModel, pairs: Sequence[Pair]) -> None:
        self._name = name
        self._loaded = loaded
        self._pairs = pairs
        sources = {index: source for index, (source, _) in enumerate(pairs)}
        readable = {index: source for index, source in sources.items() if len(source) in READABLE}
        self._sources = readable or sources
        # Weights (layers, heads, queries, keys) of the sentences that have maps.
        self._weights: dict[int, Floats] = {}

    def merging_map(self, encoder: EncoderSummary) -> HeadMap:
        """Return the map of the head that merges subwords most."""
        head = ranked(encoder["merging"], encoder["alpha"])[0]
        return self._map(head, self._most_divided(), f"score {head.score:.1%}")

    def positional_map(self, encoder: EncoderSummary) -> HeadMap:
        """Return the map of the head that most surely attends to the token before."""
        head = ranked_at(encoder, -1)[0]
        return self._map(head, self._most_divided(), f"confidence {head.score:.1%}")

    def interrogation_maps(self, encoder: EncoderSummary, words: frozenset[str]) -> list[HeadMap]:
        """Return maps of the head that attends most to question marks.

        Their sentences are the first question with an interrogative word, and the first other
        sentence with one. A sentence that the corpus lacks has no map; without a question, there
        are no maps.

        Args:
            encoder: its measures.
            words: interrogative words in lower case.
        """
        scores = encoder["interrogation"]["weight_on_question_mark"]
        if scores is None:
            return []
        head = ranked(scores, encoder["alpha"])[0]
        maps = []
        for is_question, caption in ((True, "a question"), (False, "no question")):
            index = self._first_with_interrogative(words, is_question)
            if index is not None:
                maps.append(self._map(head, index, caption))
        return maps

    def contrast_maps(self, measures: Measures) -> list[HeadMap]:
        """Return maps of one head in two sentences of equal length, where its density differs most.

        There are none if no two sentences of equal length differ.

        Args:
            measures: measures of the encoder.
        """
        lengths = {index: len(source) for index, source in self._sources.items()}
        contrast = most_varied(measures, lengths)
        if contrast is None:
            return []
        maps = []
        for index in (contrast.denser, contrast.sparser):
            density = measures.density[index][contrast.head.indices]
            maps.append(self._map(contrast.head, index, f"density {density:.0%}"))
        return maps

    def _map(self, head: Head, index: int, caption: str) -> HeadMap:
        """Return the map of a head in one sentence."""
        if index not in self._weights:
            ((_, weights),) = attend(self._loaded, [self._pairs[index]])
            self._weights[index] = weights["encoder"]
        title = f"{self._name}: encoder {head.layer}.{head.head}, alpha {head.alpha:.2f}\n{caption}"
        return HeadMap(title, self._weights[index][head.indices], self._pairs[index][0])

    def _most_divided(self) -> int:
        """Return the index of the first sentence with the most parts of words."""

        def parts(index: int) -> int:
            return len(divided_positions(clusters(self._sources[index])))

        return max(self._sources, key=parts)

    def _first_with_interrogative(self, words: frozenset[str], is_question: bool) -> int | None:
        """Return the first question, or other sentence, with an interrogative word, if any."""
        for index, source in self._sources.items():
            signs = interrogation(source, words)
            if signs.positions and signs.ends_with_mark is is_question:
                return index
        return None
