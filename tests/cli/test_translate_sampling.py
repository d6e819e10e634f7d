"""`translate`: samples, and decisions by minimum Bayes risk."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.report.reading import read_report
from onmt_entmax.search import Decision, decide
from tests.cli.translating import Record, Translated, UnsureLine, translate

# --- minimum Bayes risk ---

N_BEST = 2


@pytest.fixture(scope="module", params=["beam", "enumerate"])
def decided(
    request: pytest.FixtureRequest,
    toy_run: Path,
    unsure_lines: list[UnsureLine],
    tmp_path_factory: pytest.TempPathFactory,
) -> Translated:
    """Two lines with several outputs and a blank one between them, by minimum Bayes risk."""
    options = ["-mbr", "edit_distance", "-search", request.param, "-n_best", N_BEST]
    text = f"{unsure_lines[0].source}\n\n{unsure_lines[1].source}\n"
    return translate(toy_run, tmp_path_factory.mktemp("mbr"), text, *options)


def decision_of(record: Record) -> Decision:
    """Decide among the hypotheses of a record, whose `slack` is what all else may have."""
    probabilities = {hypothesis["text"]: hypothesis["prob"] for hypothesis in record["hypotheses"]}
    left = record["mbr"]["slack"]
    # Slack and bound of single texts count for `exact_match` alone.
    return decide("edit_distance", probabilities, left, slack=0.0, bound=0.0)


@pytest.mark.parametrize("place", [0, 2])
def test_the_ranking_is_that_of_minimum_bayes_risk(decided: Translated, place: int) -> None:
    """All that the search found are candidates."""
    record = decided.records[place]
    assert len(record["hypotheses"]) == record["finished"] > 1
    decision = decision_of(record)
    ranking = record["mbr"]["ranking"]
    assert [entry["text"] for entry in ranking] == list(decision.texts)
    assert [entry["expected_utility"] for entry in ranking] == list(decision.expected)
    assert record["mbr"]["certificate"] == decision.level


@pytest.mark.parametrize("place", [0, 2])
def test_the_best_decisions_are_written(decided: Translated, place: int) -> None:
    """If there are fewer than asked for, blank lines follow."""
    first, second, *_ = [*decision_of(decided.records[place]).texts, "", ""]
    assert decided.lines[N_BEST * place : N_BEST * (place + 1)] == [first, second]


def test_every_line_has_as_many_outputs_as_asked_for(decided: Translated) -> None:
    assert len(decided.lines) == N_BEST * len(decided.records)


@pytest.mark.parametrize("place", [0, 2])
def test_a_decision_is_exact_if_the_search_is_exhaustive(decided: Translated, place: int) -> None:
    record = decided.records[place]
    is_exhaustive = record["certificate"] == "exhaustive"
    assert (record["mbr"]["certificate"] == "exact") == is_exhaustive


def test_a_blank_line_needs_no_decision(decided: Translated) -> None:
    assert "mbr" not in decided.records[1]
    assert sum(decided.summary["mbr"].values()) == 2


# --- samples ---

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
