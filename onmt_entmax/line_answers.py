"""Turn the result of a line's search into its answer, with texts and alignments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onmt_entmax.data.phrase_table import replace_unknown
from onmt_entmax.data.reader import EncodedSource, Reader
from onmt_entmax.line_reader import Line
from onmt_entmax.report.alignment import alignment
from onmt_entmax.report.answers import Answer, Decoded, Drawn, SourceTokens
from onmt_entmax.search import Hypothesis, Sample, SearchConfig, SearchResult, Verification


@dataclass(frozen=True)
class LineAnswers:
    """Turns results of searches, or samples, into answers.

    Attributes:
        reader: the reader of the model.
        config: the configuration of the search.
        dense_attention: whether a source position always has positive weight.
        phrase_table: target words for source words, to replace `<unk>` in texts; None: it stays.
        align: whether hypotheses get alignments.
    """

    reader: Reader
    config: SearchConfig
    dense_attention: bool
    phrase_table: Mapping[str, str] | None
    align: bool

    def of_search(
        self, line: Line, result: SearchResult, verification: Verification | None
    ) -> Answer:
        """Return the answer for the result of a search.

        Args:
            line: the line that was searched.
            result: the result of its search.
            verification: the verification of the result, if there is one.
        """
        source = line.source
        unfinished = None
        if result.unfinished is not None:
            unfinished = self._decoded(result.unfinished, source).text
        return replace(
            self._unanswered(line),
            result=result,
            hypotheses=tuple(self._decoded(hypothesis, source) for hypothesis in result.hypotheses),
            unfinished=unfinished,
            attended=self._attended(result.best, len(source.words)),
            # Replacing `<unk>` may make the texts of several sequences equal, too.
            merged=self.phrase_table is not None or self.reader.can_merge_outputs,
            penalties=self.config.penalties,
            verification=verification,
        )

    def of_samples(self, line: Line, drawn: Sequence[Sample]) -> Answer:
        """Return the answer for samples."""
        samples = []
        for sample in drawn:
            hypothesis = Hypothesis(sample.tokens, sample.log_prob, sample.log_prob)
            samples.append(Drawn(self._decoded(hypothesis, line.source).text, sample))
        return replace(self._unanswered(line), samples=tuple(samples))

    def _unanswered(self, line: Line) -> Answer:
        """Return an answer without outputs: the line, its tokens and restrictions of outputs."""
        source = line.source
        constraints = self.config.constraints
        # Restrictions under their names in reports; those with a false value are not in force.
        restrictions = {
            "prefix": line.prefix,
            "constraints": line.automaton is not None,
            "min_length": constraints.min_length,
            "block_ngram_repeat": constraints.block_ngram_repeat,
            "ban_unk_token": constraints.banned,
            "target_symbols": self.reader.restricts_outputs(source.words),
        }
        return Answer(
            source.example.index,
            line.text,
            restricted_by=tuple(name for name, value in restrictions.items() if value),
            source_tokens=SourceTokens(
                count=len(source.words),
                unknown=source.unknown,
                unseen=source.unseen,
                copied=tuple(source.copies.symbols.values()),
            ),
        )

    def _attended(self, hypothesis: Hypothesis | None, length: int) -> tuple[int, ...]:
        """Return the number of attended source positions at each step; none without attention.

        Args:
            hypothesis: the hypothesis, whose attention is `(steps, source positions)`.
            length: number of source tokens; further positions are padding.
        """
        if hypothesis is None or hypothesis.attention is None:
            return ()
        weights = hypothesis.attention[:, :length]
        if self.dense_attention:  # softmax weights are positive, although some may round to 0
            return (length,) * len(weights)
        return tuple(map(int, (weights > 0).sum(1)))

    def _decoded(self, hypothesis: Hypothesis, source: EncodedSource) -> Decoded:
        """Return the text of a hypothesis, with its alignment if that was asked for."""
        target = self.reader.vocabularies.target.decode(hypothesis.tokens)
        copies = source.copies
        attention = hypothesis.attention
        tokens = " ".join(self.reader.codec.decode(target, copies))
        aligned = None
        if attention is not None and self.align:
            aligned = alignment(
                attention,
                source.words,
                target,
                dense=self.dense_attention,
                backwards=self.reader.right_to_left,
            )
        if attention is not None and self.phrase_table is not None:
            target = replace_unknown(target, source.words, attention, self.phrase_table)
        text = self.reader.postprocess(target, copies)
        return Decoded(text, hypothesis, aligned, None if tokens == text else tokens)
