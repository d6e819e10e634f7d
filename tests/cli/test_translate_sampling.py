"""`translate -random_sampling_topk`: samples of the outputs."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.report.reading import read_report
from tests.cli.translating import Record, Translated, UnsureLine, translate

# Three samples of each line, drawn from all tokens (-1).
SAMPLING = ["-random_sampling_topk", -1, "-n_best", 3, "-seed", 3]


@pytest.fixture(scope="module")
def sampled(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Three samples of each of two lines, with a blank line between them."""
    folder = tmp_path_factory.mktemp("sampled")
    return translate(toy_run, folder, "a b c\n\nd e\n", *SAMPLING, "-random_sampling_temp", 2)


def texts(record: Record) -> list[str]:
    """Return the samples of a line."""
    return [sample["text"] for sample in record["samples"]]


def test_each_line_has_its_samples_in_the_report(sampled: Translated) -> None:
    assert [len(texts(record)) for record in sampled.records] == [3, 0, 3]


def test_the_samples_in_the_report_are_those_of_the_output(sampled: Translated) -> None:
    first, _, last = map(texts, sampled.records)
    for_the_blank_line = ["", "", ""]  # so that every line of the input has as many
    assert sampled.lines == [*first, *for_the_blank_line, *last]


def test_each_sample_has_a_probability(sampled: Translated) -> None:
    probabilities = [sample["prob"] for line in sampled.records for sample in line["samples"]]
    assert len(probabilities) == 6
    assert all(0 < probability <= 1 for probability in probabilities)


def test_the_summary_counts_samples(sampled: Translated) -> None:
    summary = sampled.summary
    assert (summary["sentences"], summary["blank_lines"], summary["samples"]) == (2, 1, 6)


def test_the_summary_has_the_settings_of_sampling(sampled: Translated) -> None:
    summary = sampled.summary
    settings = {"topk": -1, "topp": 0.0, "temp": 2.0, "distinct": False, "seed": 3}
    assert (summary["search"], summary["sampling"]) == ("sampling", settings)


def test_a_report_of_samples_has_no_certificates_to_read(sampled: Translated) -> None:
    with pytest.raises(UserError, match="1: a record of samples, which have no certificate"):
        next(read_report(sampled.folder / "report.jsonl"))


@pytest.mark.parametrize(
    ("distinct", "repeats"), [((), True), (("-random_sampling_distinct",), False)]
)
def test_only_distinct_samples_do_not_repeat(
    distinct: tuple[str, ...],
    repeats: bool,
    toy_run: Path,
    unsure_lines: list[UnsureLine],
    tmp_path: Path,
) -> None:
    text = f"{unsure_lines[0].source}\n"
    (record,) = translate(toy_run, tmp_path, text, *SAMPLING, *distinct).records
    assert (len(set(texts(record))) < 3) == repeats
