"""The records of answers for the page of `onmt-entmax serve`, with texts as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.files import finite
from onmt_entmax.prediction import Prediction
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.strings.tag_hints import tag_hint
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.token_warnings import described_token
from onmt_entmax.writing_warnings import Nouns, WritingWarnings

_APART = "These models are searched apart, so their outputs have no common pictures."
# Keys of a record that count source tokens which training had rarely or never.
_RARE_TOKENS = ("unknown", "unseen", "copied")


@dataclass(frozen=True)
class PageRecords:
    """Makes the record that the page shows for a query.

    Attributes:
        task: of the models.
        sources: source vocabularies of the models.
        tags: that all models know.
        nouns: what people call a source and an output.
        listed: averaged outputs that a record lists.
    """

    task: StringTask
    sources: Sequence[Vocabulary]
    tags: Sequence[str]
    nouns: Nouns
    listed: int

    def of_answer(self, query: Query, answer: Answer) -> dict[str, Any]:
        """Return the record of a search: that of a report, for translations as it is.

        For strings of other units, texts and tokens are as people write them, and there are
        warnings.
        """
        record = answer_record(answer)
        if self.task.source.kind == "text":
            return record
        decode = self.task.target.decode
        record["written"] = True
        for hypothesis in record["hypotheses"]:
            hypothesis["text"] = decode(hypothesis["text"].split())
        if "unfinished" in record:
            record["unfinished"] = decode(record["unfinished"].split())
        if answer.source_tokens.copied:
            record["copied"] = dict.fromkeys(answer.source_tokens.copied, 1)
        rare = [key for key in _RARE_TOKENS if key in record]
        for key in rare:
            record[key] = {self._described(token): count for token, count in record[key].items()}
        warnings = WritingWarnings(self.task, self.sources, self.nouns)
        texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
        record["warnings"] = warnings.of(query, texts, has_unseen=len(rare) > 0)
        return record

    def _described(self, token: str) -> str:
        """Return a source token for people; for an unknown tag, with tags like it."""
        return described_token(token, self.task.source) + tag_hint(token, self.tags)

    def of_prediction(self, line: str, prediction: Prediction) -> dict[str, Any]:
        """Return the record of averaged outputs.

        Args:
            line: the query as the models read it.
            prediction: for this query.
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
