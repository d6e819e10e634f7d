"""`translate -random_sampling_topk`: samples of the outputs."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.report.reading import read_report
from tests.cli.translating import Translated, UnsureLine, translate

SAMPLING = ["-random_sampling_topk", -1, "-n_best", 3, "-seed", 3]


@pytest.fixture(scope="module")
def sampled(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Three samples of two lines, a blank one between them."""
    folder = tmp_path_factory.mktemp("sampled")
    return translate(toy_run, folder, "a b c\n\nd e\n", *SAMPLING, "-random_sampling_temp", 2)


def test_samples_are_written_and_reported(sampled: Translated) -> None:
    first, blank, last = (
        [sample["text"] for sample in record["samples"]] for record in sampled.records
    )
    assert (len(first), len(blank), len(last)) == (3, 0, 3)
    assert sampled.lines == [*first, "", "", "", *last]
    assert all(
        0 < sample["prob"] <= 1 for record in sampled.records for sample in record["samples"]
    )


def test_the_summary_has_the_settings_of_sampling(sampled: Translated) -> None:
    summary = sampled.summary
    assert (summary["sentences"], summary["blank_lines"], summary["samples"]) == (2, 1, 6)
    settings = {"topk": -1, "topp": 0.0, "temp": 2.0, "distinct": False, "seed": 3}
    assert (summary["search"], summary["sampling"]) == ("sampling", settings)


def test_a_report_of_samples_has_no_certificates_to_read(sampled: Translated) -> None:
    with pytest.raises(UserError, match="1: a record of samples, which have no certificate"):
        next(read_report(sampled.folder / "report.jsonl"))


def test_distinct_samples_do_not_repeat(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path: Path
) -> None:
    options = [*SAMPLING, "-random_sampling_distinct"]
    (record,) = translate(toy_run, tmp_path, f"{unsure_lines[0].source}\n", *options).records
    assert len({sample["text"] for sample in record["samples"]}) == 3
