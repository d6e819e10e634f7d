"""Build the prediction for a query from the answers of the models that were searched for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.analogous_outputs import NO_ANALOGIES, QueryAnalogies
from onmt_entmax.prediction import Prediction
from onmt_entmax.proven_outputs import Output
from onmt_entmax.query_checks import QueryChecker
from onmt_entmax.query_results import QueryResult, averaged_result, single_result
from onmt_entmax.report.answers import Answer
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.token_warnings import token_warnings
from onmt_entmax.writing_warnings import WritingWarnings


@dataclass(frozen=True)
class PredictionBuilder:
    """Builds predictions with their warnings.

    Attributes:
        task: the task of the models.
        checker: says which tags training had in a language.
        writing: warns of queries that are not written as the training data is.
        weights: the weights of the groups of models, whose outputs are averaged; None: there is one
            group, and nothing to average.
        n_best: number of averaged outputs that are listed; 0: all.
        restricts_symbols: whether outputs may have only symbols of their source and language.
        analogies: outputs by analogy are averaged with those of the models; None: there are none.
    """

    task: StringTask
    checker: QueryChecker
    writing: WritingWarnings
    weights: Sequence[float] | None
    n_best: int
    restricts_symbols: bool
    analogies: QueryAnalogies | None

    def prediction(self, query: Query, answers: Sequence[Answer]) -> Prediction:
        """Return the prediction for a query.

        Args:
            query: a query that `checker` has checked.
            answers: the answers to it, one of each group of models.
        """
        result = self._result(query, answers)
        certificate = result.certificate
        warnings = self._warnings(query, answers, result.outputs)
        only = certificate.level == "exhaustive" and result.finished == 1
        # Every search excludes some tokens: start and padding symbols, and symbols that have a
        # placeholder. No text is excluded with them. But `target_symbols` excludes texts.
        if self.restricts_symbols and certificate.log_excluded_bound > -math.inf:
            only = False
            warnings.append(f"excluded with symbols: probability {certificate.excluded:.3g}")
        return Prediction(query, result.outputs, certificate, tuple(warnings), only)

    def _result(self, query: Query, answers: Sequence[Answer]) -> QueryResult:
        """Return the outputs of all models, and those by analogy, with their certificate."""
        unit = self.task.target
        if self.weights is not None:
            analogous = self.analogies.outputs(query) if self.analogies else NO_ANALOGIES
            return averaged_result(
                answers, self.weights, unit, n_best=self.n_best, analogous=analogous
            )
        (answer,) = answers
        return single_result(answer, unit)

    def _warnings(
        self, query: Query, answers: Sequence[Answer], outputs: Sequence[Output]
    ) -> list[str]:
        """Return reasons why the outputs may be wrong."""
        by_group = [answer.source_tokens for answer in answers]
        warnings = token_warnings(
            unknown=[token for tokens in by_group for token in tokens.unknown],
            copied=[token for tokens in by_group for token in tokens.copied],
            unseen=[tokens.unseen for tokens in by_group],
            unit=self.task.source,
            known_tags=self.checker.tags_of(query.language),
        )
        texts = [output.text for output in outputs]
        warnings += self.writing.of(query, texts, has_unseen=len(warnings) > 0)
        if not query.tags and self.checker.has_tags(query.language):
            warnings.append("no tags, although training had some")
        if not outputs:
            warnings.append(f"no {self.writing.nouns.output} ended within the length limit")
        return warnings
