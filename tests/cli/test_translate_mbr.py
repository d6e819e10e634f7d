"""`translate -mbr`: the outputs of least expected risk, and their report."""

from pathlib import Path

import pytest

from onmt_entmax.search import Decision, decide
from tests.cli.translating import Record, Translated, UnsureLine, translate

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
    """Decide among the hypotheses of a record, whose `slack` bounds the probability of all else.

    `decide` is tested in `tests/search/test_mbr.py`; here, that the command calls it so.
    """
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
