"""Average several models by their exactness reports (sequence-level ensemble).

    onmt-entmax translate -model run/a/model -src run/data/dev.src -n_best 5 \\
        -output run/a.pred -exactness_report run/a.jsonl
    onmt-entmax translate -model run/reversed/model -src run/data/dev.src -n_best 5 \\
        -output run/reversed.pred -exactness_report run/reversed.jsonl
    onmt-entmax combine --reports run/a.jsonl run/reversed.jsonl --output run/both.pred \\
        --report run/both.jsonl

`onmt-entmax translate -model A B` averages the probabilities of next tokens, so its models must
share a vocabulary and a direction. This command averages the probabilities of whole outputs. So it
can combine left-to-right with right-to-left models: their reports have texts in natural order.

The average is exact if every search was exhaustive. Otherwise it lies between bounds, which follow
from those of the reports. A larger -n_best makes them tighter. If two outputs have the same
average, the report that is named first decides which one comes first.

--report writes an exactness report of the average, and its summary beside it. In this report,
`prob` is a lower bound, and `prob + slack` is an upper bound; without `slack`, `prob` is exact.
--mbr chooses the outputs by the average, as -mbr of `translate` does.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.weight_options import add_paths, normalised_weights
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, replaced_with_optional
from onmt_entmax.report.combine import combined
from onmt_entmax.report.counts import CertificateCounts
from onmt_entmax.report.mbr import decide_record, decision_record
from onmt_entmax.report.optional_counts import MbrCounts
from onmt_entmax.report.output_lines import one_line
from onmt_entmax.report.rate_lines import rate_lines
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import Record, is_blank, output_of
from onmt_entmax.report.writers import summary_path
from onmt_entmax.search.utilities import UTILITIES, Utility


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add_paths(parser, "--reports", "exactness reports of `translate`")
    add("--weights", type=float, nargs="+", help="a weight for each report (default: equal ones)")
    add("--output", type=Path, required=True, help="write the best outputs here, one per line")
    add("--report", type=Path, help="write an exactness report of the average here")
    add(
        "--mbr",
        choices=UTILITIES,
        help="write the outputs of the highest expected utility instead of the most probable",
    )
    options = parser.parse_args(arguments)
    count = len(options.reports)
    options.weights = normalised_weights(options.weights or [1.0] * count, count, "report")
    return options


def main(arguments: Sequence[str]) -> int:
    """Combine the reports; return the exit status."""
    options = parse_arguments(arguments)
    optional = [options.report, summary_path(options.report)]
    refuse_overwriting(options.reports, [options.output, *optional])
    average = _Average(options.weights, options.mbr)
    with replaced_with_optional([options.output], optional) as ((output,), (report, summary_file)):
        for records in _aligned_records(options.reports):
            record = average.record(records)
            print(one_line(output_of(record).text), file=output)
            if report is not None:
                print(json.dumps(record, ensure_ascii=False, allow_nan=False), file=report)
        summary = average.summary()
        if summary_file is not None:
            averaged = {"reports": list(map(str, options.reports)), "weights": options.weights}
            summary_file.write(json_text(summary | averaged))
    print(f"{options.output}: {counted(summary['sentences'], 'sentence')}")
    print(*rate_lines(summary), sep="\n")
    return 0


def _aligned_records(paths: Sequence[Path]) -> Iterator[list[Record]]:
    """Yield for each sentence its records in several reports.

    Raises:
        UserError: a report cannot be read, or has other sentences than the first.
    """
    for number, records in enumerate(zip_longest(*map(read_report, paths)), start=1):
        present = [record for record in records if record is not None]
        if len(present) < len(paths):
            short = paths[records.index(None)]
            size = counted(number - 1, "sentence")
            raise UserError(f"{short}: {size}, but another report has more")
        for path, record in zip(paths, present, strict=True):
            if record["source"] != present[0]["source"]:
                raise UserError(f"{path}:{number}: another source than in {paths[0]}")
        yield present


class _Average:
    """Averages the records of several reports, and counts the results.

    Args:
        weights: weights of the reports, which add up to 1.
        utility: utility of decisions by minimum Bayes risk, such as an edit distance; None: the
            most probable output is chosen.
    """

    def __init__(self, weights: Sequence[float], utility: Utility | None) -> None:
        self._weights = weights
        self._utility = utility
        self._counts = CertificateCounts()
        self._decisions = MbrCounts()

    def record(self, records: Sequence[Record]) -> Record:
        """Return the average of the records of a line, with the decision if there is a utility.

        Args:
            records: record of the line in each report.
        """
        if is_blank(records[0]):  # the line is blank in all reports, and has no outputs
            self._counts.add_record(records[0])
            return records[0]
        record = combined(records, self._weights)
        self._counts.add_record(record)
        decision = None if self._utility is None else decide_record(self._utility, record)
        if decision is None:
            return record
        most_probable = record["hypotheses"][0]["text"]
        self._decisions.add(decision, most_probable)
        return {**record, "mbr": decision_record(decision)}

    def summary(self) -> dict[str, Any]:
        """Return the counts of all records so far, for JSON."""
        decisions = {} if self._utility is None else self._decisions.as_dict()
        return self._counts.as_dict() | decisions
