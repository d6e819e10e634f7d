"""Make the records that the page of `serve` shows, with texts as people write them.

A record shows an `Answer`, the result of one search, or a `Prediction`, the average of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.files import finite
from onmt_entmax.prediction import Prediction
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.records import Record
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.tag_hints import tag_hint
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.token_warnings import described_token
from onmt_entmax.writing_warnings import Nouns, WritingWarnings

_APART = "These models are searched apart, so their outputs have no common pictures."
# Keys of a record that count source tokens which training had rarely or never.
_RARE_TOKENS = ("unknown", "unseen", "copied")


@dataclass(frozen=True)
class PageRecords:
    """Makes the records that the page shows.

    Attributes:
        task: the task of the models.
        sources: source vocabularies of the models.
        tags: the tags that all models know.
        nouns: names of a source and an output in messages.
        cells: the orders in which training had tags.
        listed: number of averaged outputs that a record lists.
    """

    task: StringTask
    sources: Sequence[Vocabulary]
    tags: Sequence[str]
    nouns: Nouns
    cells: Cells
    listed: int

    def of_answer(self, query: Query, answer: Answer) -> Record:
        """Return the record of a search, as a report has it.

        If the units are characters or symbols, texts and tokens are as people write them, and the
        record has two more fields: `written`, which is True, and `warnings`.

        Args:
            query: the query.
            answer: the result of the search for it.
        """
        record = answer_record(answer)
        if self.task.source.kind == "text":
            return record
        rare_tokens = self._rare_tokens(record, answer)
        record |= {"written": True, **self._texts(record), **rare_tokens}
        warnings = WritingWarnings(self.task, self.sources, self.nouns, self.cells)
        texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
        record["warnings"] = warnings.of(query, texts, has_unseen=len(rare_tokens) > 0)
        return record

    def of_prediction(self, line: str, prediction: Prediction) -> dict[str, Any]:
        """Return the record of averaged outputs.

        Args:
            line: the query as the models read it.
            prediction: prediction for this query.
        """
        certificate = prediction.certificate
        outputs = prediction.outputs
        return finite(
            {
                "source": line,
                "written": self.task.source.kind != "text",
                "certificate": certificate.level,
                "bound": certificate.bound,
                "mass": min(certificate.mass, 1.0),  # rounding may exceed 1
                "dropped": certificate.dropped,
                "truncated": certificate.truncated,
                "excluded": min(certificate.excluded, 1.0),
                "finished": len(outputs),
                "hypotheses": [output.to_dict() for output in outputs[: self.listed]],
                "warnings": prediction.warnings,
                "no_pictures": _APART,
            }
        )

    def _texts(self, record: Record) -> dict[str, Any]:
        """Return `hypotheses` and `unfinished` of a record, with texts as people write them."""

        def written(tokens: str) -> str:
            return self.task.target.decode(tokens.split())

        hypotheses = [
            hypothesis | {"text": written(hypothesis["text"])}
            for hypothesis in record["hypotheses"]
        ]
        if "unfinished" not in record:
            return {"hypotheses": hypotheses}
        return {"hypotheses": hypotheses, "unfinished": written(record["unfinished"])}

    def _rare_tokens(self, record: Record, answer: Answer) -> dict[str, dict[str, int]]:
        """Return the fields of a record that count rare source tokens, as people write these.

        Args:
            record: the record.
            answer: the answer, whose copied tokens the record lacks.
        """
        copied = answer.source_tokens.copied
        counts = record | ({"copied": dict.fromkeys(copied, 1)} if copied else {})
        return {
            key: {self._described(token): count for token, count in counts[key].items()}
            for key in _RARE_TOKENS
            if key in counts
        }

    def _described(self, token: str) -> str:
        """Return a source token for people; for an unknown tag, with tags like it."""
        return described_token(token, self.task.source) + tag_hint(token, self.tags)
