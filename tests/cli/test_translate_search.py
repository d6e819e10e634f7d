"""`translate`: exact search, enumeration, and options that exclude outputs from a search."""

from pathlib import Path

import pytest

from tests.cli.translating import Translated, UnsureLine, translate

# --- exact search ---


@pytest.fixture(scope="module")
def exact(toy_run: Path, toy_source: str, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """The development text, translated by an exact search that begins with a beam of one."""
    folder = tmp_path_factory.mktemp("exact")
    return translate(toy_run, folder, toy_source, "-beam_size", 1, "-search", "exact")


def test_exact_search_proves_every_output(exact: Translated) -> None:
    assert exact.records
    assert all(record["certificate"] != "none" for record in exact.records)


def test_no_greedy_output_is_more_probable_than_that_of_exact_search(
    exact: Translated, toy_run: Path, toy_source: str, tmp_path: Path
) -> None:
    greedy = translate(toy_run, tmp_path, toy_source, "-beam_size", 1, "-stop", "first")
    for first, best in zip(greedy.best, exact.best, strict=True):
        # The batches have different sizes, so that the same output is rounded in two ways.
        assert best["prob"] >= first["prob"] - 1e-6


# --- enumeration ---


@pytest.fixture(scope="module")
def enumerated(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """All outputs of two lines, each of which has several."""
    text = f"{unsure_lines[0].source}\n{unsure_lines[1].source}\n"
    return translate(toy_run, tmp_path_factory.mktemp("all"), text, "-search", "enumerate")


def test_enumeration_is_exhaustive(enumerated: Translated) -> None:
    assert [record["certificate"] for record in enumerated.records] == ["exhaustive"] * 2


def test_enumeration_lists_all_that_it_finds(enumerated: Translated) -> None:
    for record in enumerated.records:
        assert len(record["hypotheses"]) == record["finished"] > 1


def test_enumerated_probabilities_add_up_to_1(enumerated: Translated) -> None:
    for record in enumerated.records:
        mass = sum(hypothesis["prob"] for hypothesis in record["hypotheses"])
        assert mass == pytest.approx(1, abs=1e-5)  # a sum in float32


def test_enumeration_may_end_at_a_mass(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path: Path
) -> None:
    least_sure = unsure_lines[0]
    options = ("-search", "enumerate", "-mass", 0.5)
    (record,) = translate(toy_run, tmp_path, f"{least_sure.source}\n", *options).records
    assert record["mass"] >= 0.5
    assert record["finished"] < len(least_sure.outputs)


# --- outputs that options exclude ---


def test_if_no_output_is_long_enough_all_probability_is_excluded(
    toy_run: Path, tmp_path: Path
) -> None:
    translated = translate(toy_run, tmp_path, "a b\n", "-min_length", 5, "-beam_size", 20)
    (record,) = translated.records
    assert record["hypotheses"] == []
    assert record["excluded"] == pytest.approx(1, abs=1e-5)  # a sum in float32


def repeats_a_token(line: str) -> bool:
    return len(set(line.split())) < len(line.split())


def test_blocked_tokens_do_not_repeat(toy_run: Path, toy_source: str, tmp_path: Path) -> None:
    options = ["-block_ngram_repeat", 1, "-ban_unk_token", "-length_penalty", "avg"]
    free = translate(toy_run, tmp_path, toy_source)
    blocked = translate(toy_run, tmp_path, toy_source, *options)
    assert any(map(repeats_a_token, free.lines))
    assert not any(map(repeats_a_token, blocked.lines))
    assert any(len(line.split()) > 1 for line in blocked.lines)  # a single token cannot repeat
