"""Choose the predictions that become training pairs of `distill`.

A report has a record for each query, with the hypotheses of the models and their probabilities.
`certified_records` selects records, and `best_text` or `drawn_text` chooses a hypothesis of each.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from onmt_entmax.report.output_lines import one_line
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import Record
from onmt_entmax.strings.units import UNKNOWN


def certified_records(path: Path, least: float, most: float) -> Iterator[Record]:
    """Yield the records whose best hypothesis is certified and has a probability in a range.

    Args:
        path: an exactness report of `translate` or `combine`.
        least: the least probability of the best hypothesis.
        most: the greatest probability of the best hypothesis.

    Raises:
        UserError: the file is not such a report.
    """
    for record in read_report(path):
        hypotheses = record["hypotheses"]
        is_certified = bool(hypotheses) and record["certificate"] != "none"
        if is_certified and least <= hypotheses[0]["prob"] <= most:
            yield record


def best_text(record: Record) -> str:
    """Return the text of the best hypothesis."""
    return str(record["hypotheses"][0]["text"])


def drawn_text(record: Record, generator: random.Random) -> str:
    """Return the text of a hypothesis that is sampled by the probabilities."""
    texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
    probs = [hypothesis["prob"] for hypothesis in record["hypotheses"]]
    (text,) = generator.choices(texts, weights=probs)
    return str(text)


def pseudo_labels(
    records: Iterator[Record], choose: Callable[[Record], str]
) -> Iterator[tuple[str, str]]:
    """Yield the source and the chosen text of each record.

    Records are left out if the chosen text has an unknown character, `<unk>`.

    Args:
        records: records that have hypotheses, as `certified_records` yields them.
        choose: `best_text`, or `drawn_text` with a generator.
    """
    for record in records:
        text = choose(record)
        if UNKNOWN not in text.split():
            yield one_line(record["source"]), one_line(text)
