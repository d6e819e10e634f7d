"""The answer to one line: its outputs, and what is proven about them.

`Translator.answers` yields them. `output_lines.py` turns an answer into lines of the output file,
`answer_records.py` into the record of a report.
"""

from dataclasses import dataclass, field

from onmt_entmax.data.token_names import UnseenToken
from onmt_entmax.report.alignment import Alignment
from onmt_entmax.report.records import chosen_output
from onmt_entmax.search.certificate import Hypothesis, SearchResult
from onmt_entmax.search.mbr import Decision
from onmt_entmax.search.penalties import Penalties
from onmt_entmax.search.sampling import Sample
from onmt_entmax.search.verify import Verification


@dataclass(frozen=True)
class SourceTokens:
    """The tokens of a source after the transforms: their number, and the unusual ones.

    Attributes:
        count: number of tokens.
        unknown: tokens that are not in the vocabulary; the model reads `<unk>` in their place, and
            the certificate is about that source.
        unseen: tokens that training did not see in the source's language, each with the token of
            this language, see `Vocabulary.unseen`.
        copied: tokens that the model reads as placeholders, each once.
    """

    count: int = 0
    unknown: tuple[str, ...] = ()
    unseen: tuple[UnseenToken, ...] = ()
    copied: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decoded:
    """A hypothesis and its text.

    Attributes:
        text: the text that people read, after all transforms are undone.
        hypothesis: the hypothesis that the search found.
        alignment: its alignment to the source; None if the user did not ask for it.
        tokens: the model's tokens in the order of the text, with spaces between them; None if
            they equal the text.
    """

    text: str
    hypothesis: Hypothesis
    alignment: Alignment | None = None
    tokens: str | None = None


@dataclass(frozen=True)
class Drawn:
    """A sample and its text."""

    text: str
    sample: Sample


@dataclass(frozen=True)
class Answer:
    """What a search, or sampling, returned for one input line. A blank line has neither.

    | line | `result` | `samples` |
    |---|---|---|
    | searched | result of the search | None |
    | sampled | None | its samples |
    | blank, in a search | None | None |
    | blank, among lines that are sampled | None | () |

    Attributes:
        id: number of the line, from 0.
        source: the line.
        result: what the search found and proved; see the table above.
        hypotheses: hypotheses of the result, with their texts.
        unfinished: text of the best truncated hypothesis, if none finished.
        attended: number of source positions of nonzero weight at each step of the best hypothesis;
            empty without attention.
        verification: verification of the certificate, if the task asks for it and anything was
            proven.
        merged: whether several token sequences can become the same text.
        penalties: penalties of the scores by which hypotheses are ranked.
        source_tokens: the tokens of the line.
        mbr: the texts by expected utility; None if the task does not rank by it, or there is no
            text.
        samples: outputs that were drawn; see the table above.
        restricted_by: requests that may have excluded all outputs: `prefix`, or names of options.
        abstained: whether the output file has empty lines in place of the texts.
    """

    id: int
    source: str
    result: SearchResult | None = None
    hypotheses: tuple[Decoded, ...] = ()
    unfinished: str | None = None
    attended: tuple[int, ...] = ()
    verification: Verification | None = None
    merged: bool = False
    penalties: Penalties = field(default_factory=Penalties)
    source_tokens: SourceTokens = field(default_factory=SourceTokens)
    mbr: Decision | None = None
    samples: tuple[Drawn, ...] | None = None
    restricted_by: tuple[str, ...] = ()
    abstained: bool = False

    @property
    def level(self) -> str:
        """The level of the certificate, or `only` if `SearchResult.only`: see `Prediction.level`.

        `none` for a blank line and for samples.
        """
        if self.result is None:
            return "none"
        return "only" if self.result.only else self.result.certificate.level

    @property
    def prob(self) -> float:
        """Probability of the best output, see `chosen_output`; 0 if none finished."""
        listed = [(decoded.text, decoded.hypothesis.prob) for decoded in self.hypotheses]
        return chosen_output(listed, () if self.mbr is None else self.mbr.texts).prob
