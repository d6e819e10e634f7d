"""What the report of `translate.py` says of certificates: probabilities, bounds and gaps."""

import math
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.translating import Record, Translated, translate

MASS_ERROR = 1e-5  # of a sum of probabilities in float32
SUM_ERROR = 1e-9  # of a sum in float64 of the same numbers


@pytest.fixture(scope="module")
def translated(
    toy_run: Path, toy_source: str, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """The development text, translated with a beam so wide that some results are exhaustive."""
    folder = tmp_path_factory.mktemp("translated")
    translated = translate(toy_run, folder, toy_source, "-beam_size", 10, "-verify")
    assert len(translated.best) == len(translated.records) > 0  # each line has an output
    return translated


def records_with(translated: Translated, *certificates: str) -> list[Record]:
    """Return the records with one of these certificates, of which there must be some."""
    records = [record for record in translated.records if record["certificate"] in certificates]
    assert records
    return records


# --- probabilities ---


def test_a_hypothesis_has_its_probability_beside_its_logarithm(translated: Translated) -> None:
    for best in translated.best:
        assert best["prob"] == pytest.approx(math.exp(best["log_prob"]))


def test_the_mass_of_a_record_is_at_least_that_of_its_first_hypothesis(
    translated: Translated,
) -> None:
    for record, best in zip(translated.records, translated.best, strict=True):
        assert 0 < best["prob"] <= record["mass"] + SUM_ERROR


def test_the_mass_of_a_record_is_at_most_one(translated: Translated) -> None:
    assert all(record["mass"] <= 1 + MASS_ERROR for record in translated.records)


# --- certificates ---


def test_a_record_has_proven_hypotheses_if_and_only_if_it_has_a_certificate(
    translated: Translated,
) -> None:
    for record in translated.records:
        assert (record["proven"] > 0) == (record["certificate"] != "none")


def test_a_certified_hypothesis_is_at_least_as_probable_as_the_bound(
    translated: Translated,
) -> None:
    for record in records_with(translated, "optimal", "exhaustive"):
        assert record["hypotheses"][0]["prob"] >= record["bound"]


def test_an_exhaustive_record_has_all_probability(translated: Translated) -> None:
    for record in records_with(translated, "exhaustive"):
        assert record["mass"] == pytest.approx(1, abs=MASS_ERROR)


def test_an_exhaustive_record_leaves_nothing_out(translated: Translated) -> None:
    for record in records_with(translated, "exhaustive"):
        assert record["bound"] == record["dropped"] == record["truncated"] == 0


def test_the_summary_counts_certificates(translated: Translated) -> None:
    counts = Counter(record["certificate"] for record in translated.records)
    levels = ("exhaustive", "optimal", "none")
    assert translated.summary["certificates"] == {level: counts[level] for level in levels}


# --- gaps: log-probability of the first hypothesis less the logarithm of the bound ---


def test_the_gap_is_null_if_nothing_was_dropped(translated: Translated) -> None:
    """The gap is infinite then, which JSON cannot say."""
    for record in translated.records:
        assert (record["gap"] is None) == (record["bound"] == 0)


def test_the_gap_of_an_optimal_hypothesis_is_its_distance_to_the_bound(
    translated: Translated,
) -> None:
    for record in records_with(translated, "optimal"):
        gap = record["hypotheses"][0]["log_prob"] - math.log(record["bound"])
        assert record["gap"] == pytest.approx(gap)


# --- verification in float64 ---


def test_every_certificate_is_verified(translated: Translated) -> None:
    certified = records_with(translated, "optimal", "exhaustive")
    assert [record["verified"] for record in certified] == [True] * len(certified)


def test_the_summary_counts_verifications(translated: Translated) -> None:
    certified = records_with(translated, "optimal", "exhaustive")
    summary = translated.summary
    assert (summary["verified"], summary["disagreements"]) == (len(certified), 0)
