"""`translate -mbr`: outputs of minimum Bayes risk, and their report."""

from pathlib import Path

import pytest

from onmt_entmax.search import Decision, decide
from tests.cli.translating import Record, Translated, UnsureLine, translate

N_BEST = 2  # outputs of each line


@pytest.fixture(scope="module", params=["beam", "enumerate"])
def decided(
    request: pytest.FixtureRequest,
    toy_run: Path,
    unsure_lines: list[UnsureLine],
    tmp_path_factory: pytest.TempPathFactory,
) -> Translated:
    """Two lines with several outputs each, and a blank one between them."""
    options = ["-mbr", "edit_distance", "-search", request.param, "-n_best", N_BEST]
    text = f"{unsure_lines[0].source}\n\n{unsure_lines[1].source}\n"
    return translate(toy_run, tmp_path_factory.mktemp("mbr"), text, *options)


def decision_of(record: Record) -> Decision:
    """Decide among the hypotheses of a record, whose `slack` bounds the probability of all others.

    `tests/search/test_mbr.py` tests `decide`. The tests here show that the command calls it so.
    """
    probabilities = {hypothesis["text"]: hypothesis["prob"] for hypothesis in record["hypotheses"]}
    left = record["mbr"]["slack"]
    # Slack and bound of single texts count for `exact_match` alone.
    return decide("edit_distance", probabilities, left, slack=0.0, bound=0.0)


unsure_line = pytest.mark.parametrize("place", [0, 2])  # of the lines that are not blank


@unsure_line
def test_every_output_that_the_search_found_is_a_candidate(decided: Translated, place: int) -> None:
    record = decided.records[place]
    assert len(record["mbr"]["ranking"]) == record["finished"] > 1


@unsure_line
def test_the_ranking_is_that_of_minimum_bayes_risk(decided: Translated, place: int) -> None:
    record = decided.records[place]
    decision = decision_of(record)
    ranking = [(entry["text"], entry["expected_utility"]) for entry in record["mbr"]["ranking"]]
    assert ranking == list(zip(decision.texts, decision.expected, strict=True))


@unsure_line
def test_the_certificate_is_that_of_minimum_bayes_risk(decided: Translated, place: int) -> None:
    record = decided.records[place]
    assert record["mbr"]["certificate"] == decision_of(record).level


@unsure_line
def test_the_first_of_the_ranking_are_the_outputs(decided: Translated, place: int) -> None:
    ranking = [entry["text"] for entry in decided.records[place]["mbr"]["ranking"]]
    assert decided.lines[N_BEST * place : N_BEST * (place + 1)] == ranking[:N_BEST]


def test_every_line_has_as_many_outputs_as_asked_for(decided: Translated) -> None:
    assert len(decided.lines) == N_BEST * len(decided.records)


@unsure_line
def test_a_decision_is_exact_if_and_only_if_the_search_is_exhaustive(
    decided: Translated, place: int
) -> None:
    record = decided.records[place]
    is_exhaustive = record["certificate"] == "exhaustive"
    assert (record["mbr"]["certificate"] == "exact") == is_exhaustive


def test_a_blank_line_needs_no_decision(decided: Translated) -> None:
    assert "mbr" not in decided.records[1]
    assert sum(decided.summary["mbr"].values()) == 2
