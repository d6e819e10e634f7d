"""`translate.py`, end to end: the outputs, and the report with their certificates."""

import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.translating import Translated, arguments_of, translate, written_to
from tests.commands import succeed

MASS_ERROR = 1e-5  # of a sum of probabilities in float32
SUM_ERROR = 1e-9  # of a sum in float64 of the same numbers


@pytest.fixture(scope="module")
def translated(
    toy_run: Path, toy_source: str, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """The development text, verified, with a wide beam, by the real command."""
    folder = tmp_path_factory.mktemp("translated")
    arguments = arguments_of(toy_run, folder, toy_source)
    options = ["-exactness_report", folder / "report.jsonl", "-beam_size", 10, "-verify"]
    return written_to(folder, succeed("translate.py", *arguments, *options))


def test_most_translations_are_right(translated: Translated, trained: Path) -> None:
    references = (trained / "valid.tgt").read_text().splitlines()
    pairs = zip(translated.lines, references, strict=True)
    assert sum(output == reference for output, reference in pairs) > 0.5 * len(references)


def test_a_record_has_the_line_and_its_output(translated: Translated, toy_source: str) -> None:
    assert [record["source"] for record in translated.records] == toy_source.splitlines()
    assert [best["text"] for best in translated.best] == translated.lines


def test_a_hypothesis_has_its_probability(translated: Translated) -> None:
    for record, best in zip(translated.records, translated.best, strict=True):
        assert best["prob"] == pytest.approx(math.exp(best["log_prob"]))
        assert 0 < best["prob"] <= record["mass"] + SUM_ERROR
        assert record["mass"] <= 1 + MASS_ERROR


def test_only_certificates_prove_hypotheses(translated: Translated) -> None:
    for record in translated.records:
        assert (record["proven"] > 0) == (record["certificate"] != "none")


def test_a_certified_hypothesis_is_at_least_as_probable_as_the_bound(
    translated: Translated,
) -> None:
    certified = [record for record in translated.records if record["certificate"] != "none"]
    assert certified
    for record in certified:
        assert record["hypotheses"][0]["prob"] >= record["bound"]


def test_the_gap_is_null_if_nothing_was_dropped(translated: Translated) -> None:
    """It is infinite then, which JSON cannot say."""
    for record in translated.records:
        assert (record["gap"] is None) == (record["bound"] == 0)


def test_the_gap_of_an_optimal_hypothesis_is_its_distance_to_the_bound(
    translated: Translated,
) -> None:
    optimal = [record for record in translated.records if record["certificate"] == "optimal"]
    assert optimal
    for record in optimal:
        gap = record["hypotheses"][0]["log_prob"] - math.log(record["bound"])
        assert record["gap"] == pytest.approx(gap)


def test_an_exhaustive_record_leaves_nothing(translated: Translated) -> None:
    exhaustive = [record for record in translated.records if record["certificate"] == "exhaustive"]
    assert exhaustive
    for record in exhaustive:
        assert record["mass"] == pytest.approx(1, abs=MASS_ERROR)
        assert record["bound"] == record["dropped"] == record["truncated"] == 0


def test_the_summary_counts_certificates(translated: Translated) -> None:
    counts = Counter(record["certificate"] for record in translated.records)
    levels = ("exhaustive", "optimal", "none")
    assert translated.summary["certificates"] == {level: counts[level] for level in levels}


def test_certified_outputs_are_verified_in_float64(translated: Translated) -> None:
    certified = [record for record in translated.records if record["certificate"] != "none"]
    assert certified
    assert all(record["verified"] for record in certified)
    summary = translated.summary
    assert (summary["verified"], summary["disagreements"]) == (len(certified), 0)


# --- blank lines and unknown tokens ---


def test_blank_lines_keep_their_place(toy_run: Path, tmp_path: Path) -> None:
    translated = translate(toy_run, tmp_path, "a b c\n\n   \nb a\n", "-n_best", 2)
    assert len(translated.lines) == 4 * 2
    assert translated.lines[2:6] == [""] * 4
    has_hypotheses = [bool(record["hypotheses"]) for record in translated.records]
    assert has_hypotheses == [True, False, False, True]


@pytest.fixture
def with_unknown(toy_run: Path, tmp_path: Path) -> Translated:
    """A text in which two of four tokens are unknown."""
    return translate(toy_run, tmp_path, "a b\nfed x\n")


def test_tokens_that_training_never_saw_are_named(with_unknown: Translated) -> None:
    assert "2 of 4 source tokens (50.00 %), in 1 of 2 lines, not" in with_unknown.printed
    assert "'fed', 'x'" in with_unknown.printed


def test_a_report_counts_unknown_tokens(with_unknown: Translated) -> None:
    unknown = [record.get("unknown") for record in with_unknown.records]
    assert unknown == [None, {"fed": 1, "x": 1}]
    summary = with_unknown.summary
    assert (summary["unknown_tokens"], summary["unknown_percent"]) == (2, 50.0)


# --- scores behind the outputs ---


class Scored(NamedTuple):
    """Options, and the part of a record with their outputs and scores."""

    options: list[object]
    outputs: str
    score: str


@pytest.mark.parametrize(
    "scored",
    [
        pytest.param(Scored([], "hypotheses", "log_prob"), id="beam"),
        pytest.param(Scored(["-random_sampling_topk", 2], "samples", "log_prob"), id="sampling"),
        pytest.param(Scored(["-length_penalty", "avg"], "hypotheses", "score"), id="penalty"),
    ],
)
def test_scores_behind_the_outputs_are_those_of_the_report(
    toy_run: Path, toy_source: str, tmp_path: Path, scored: Scored
) -> None:
    """A blank line has no score."""
    options = ["-with_score", "-n_best", 2, *scored.options]
    translated = translate(toy_run, tmp_path, f"\n{toy_source}", *options)
    assert translated.lines[:2] == ["", ""]
    expected = [
        f"{output['text']}\t{output[scored.score]}"
        for record in translated.records[1:]
        for output in record[scored.outputs][:2]
    ]
    assert [line for line in translated.lines if line] == expected


def test_scores_under_a_penalty_are_no_log_probabilities(
    toy_run: Path, toy_source: str, tmp_path: Path
) -> None:
    translated = translate(toy_run, tmp_path, toy_source, "-length_penalty", "avg")
    assert any(best["score"] != best["log_prob"] for best in translated.best)
