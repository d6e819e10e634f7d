"""`translate`: options of the search, which prove outputs, list them or exclude others."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import translate as command
from tests.cli.translating import Translated, UnsureLine, arguments_of, translate
from tests.in_process import refusal

# --- exact search and enumeration ---


def test_exact_search_proves_every_output(toy_run: Path, toy_source: str, tmp_path: Path) -> None:
    exact = translate(toy_run, tmp_path, toy_source, "-beam_size", 1, "-search", "exact")
    assert all(record["certificate"] != "none" for record in exact.records)


def test_no_greedy_output_is_more_probable_than_that_of_exact_search(
    toy_run: Path, toy_source: str, tmp_path: Path
) -> None:
    exact = translate(toy_run, tmp_path, toy_source, "-beam_size", 1, "-search", "exact")
    greedy = translate(toy_run, tmp_path, toy_source, "-beam_size", 1, "-stop", "first")
    for first, best in zip(greedy.best, exact.best, strict=True):
        assert best["prob"] >= first["prob"] - 1e-6  # of two batches, rounded apart


def test_enumeration_lists_the_support(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path: Path
) -> None:
    text = f"{unsure_lines[0].source}\n{unsure_lines[1].source}\n"
    enumerated = translate(toy_run, tmp_path, text, "-search", "enumerate")
    for record in enumerated.records:
        assert record["certificate"] == "exhaustive"
        assert len(record["hypotheses"]) == record["finished"] > 1
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


# --- prefixes ---


class OtherBeginning(NamedTuple):
    """A source line, and a token with which possible outputs begin, but not the best one."""

    source: str
    token: str


@pytest.fixture(scope="module")
def other_beginning(unsure_lines: list[UnsureLine]) -> OtherBeginning:
    for line in unsure_lines:
        best, *others = (text.split()[:1] for text in line.outputs)
        for beginning in others:
            if beginning and beginning != best:
                return OtherBeginning(line.source, *beginning)
    raise AssertionError("all possible outputs of a line begin alike")


@pytest.fixture(scope="module")
def forced(
    toy_run: Path, other_beginning: OtherBeginning, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """Two lines, the first with this prefix, the second without one."""
    folder = tmp_path_factory.mktemp("forced")
    (folder / "prefixes").write_text(f"{other_beginning.token}\n\n")
    options = ("-tgt", folder / "prefixes", "-tgt_prefix", "-n_best", 2)
    return translate(toy_run, folder, f"{other_beginning.source}\nd e\n", *options)


def test_outputs_begin_with_their_prefix(
    forced: Translated, other_beginning: OtherBeginning
) -> None:
    hypotheses = forced.records[0]["hypotheses"]
    assert {hypothesis["text"].split()[0] for hypothesis in hypotheses} == {other_beginning.token}


def test_a_line_without_a_prefix_has_the_same_output(
    forced: Translated, toy_run: Path, tmp_path: Path
) -> None:
    free = translate(toy_run, tmp_path, "d e\n", "-n_best", 2)
    assert forced.lines[2:] == free.lines


def test_an_impossible_prefix_has_no_output(toy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("f f f f\n")
    options = ("-tgt", tmp_path / "prefixes", "-tgt_prefix")
    translated = translate(toy_run, tmp_path, "a b c\n", *options)
    assert translated.lines == [""]
    assert translated.records[0]["hypotheses"] == []


@pytest.fixture
def prefixes(tmp_path: Path) -> Path:
    """A file with a prefix for the first line, and none for the second."""
    path = tmp_path / "prefixes"
    path.write_text("b\n\n")
    return path


def test_a_target_without_tgt_prefix_is_not_read(
    toy_run: Path, prefixes: Path, tmp_path: Path
) -> None:
    translated = translate(toy_run, tmp_path, "a b c\nd e\n", "-tgt", prefixes)
    assert "tgt (without tgt_prefix; for its prob" in translated.printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Q\n", "prefix of line 1: 'Q' is not in the target vocabulary"),
        ("a\nb\nc\n", "has 1; they must correspond"),
    ],
    ids=["unknown token", "too many"],
)
def test_wrong_prefixes_are_refused(
    toy_run: Path, prefixes: Path, tmp_path: Path, text: str, message: str
) -> None:
    prefixes.write_text(text)
    arguments = [*arguments_of(toy_run, tmp_path), "-tgt", prefixes, "-tgt_prefix"]
    assert message in refusal(command.main, arguments, progress=True)


# --- other outputs are excluded ---


def test_if_nothing_is_long_enough_everything_is_excluded(toy_run: Path, tmp_path: Path) -> None:
    translated = translate(toy_run, tmp_path, "a b\n", "-min_length", 5, "-beam_size", 20)
    (record,) = translated.records
    assert record["hypotheses"] == []
    assert record["excluded"] == pytest.approx(1, abs=1e-5)  # a sum in float32


def test_blocked_tokens_do_not_repeat(toy_run: Path, toy_source: str, tmp_path: Path) -> None:
    options = ["-block_ngram_repeat", 1, "-ban_unk_token", "-length_penalty", "avg"]

    def repeats(line: str) -> bool:
        return len(set(line.split())) < len(line.split())

    free = translate(toy_run, tmp_path, toy_source)
    blocked = translate(toy_run, tmp_path, toy_source, *options)
    assert any(map(repeats, free.lines))
    assert not any(map(repeats, blocked.lines))
    assert any(len(line.split()) > 1 for line in blocked.lines)  # a single token cannot repeat


# --- length rewards ---


REWARD, RATIO = 0.7, 1.4


@pytest.fixture(scope="module", params=["beam", "exact"])
def rewarded(
    request: pytest.FixtureRequest,
    toy_run: Path,
    unsure_lines: list[UnsureLine],
    tmp_path_factory: pytest.TempPathFactory,
) -> Translated:
    """Three lines, of which two have several outputs, with a length reward."""
    options = ["-beam_size", 4, "-n_best", 3, "-search", request.param, "-verify"]
    options += ["-length_reward", REWARD, "-length_ratio", RATIO]
    text = f"{unsure_lines[0].source}\n{unsure_lines[1].source}\na\n"
    return translate(toy_run, tmp_path_factory.mktemp("reward"), text, *options)


def test_a_length_reward_counts_tokens_as_the_report_does(rewarded: Translated) -> None:
    """With the end symbol, up to the source's length times the ratio."""
    assert len(rewarded.records[0]["hypotheses"]) > 1
    for record in rewarded.records:
        for hypothesis in record["hypotheses"]:
            length = len(hypothesis.get("tokens", hypothesis["text"]).split()) + 1
            reward = REWARD * min(length, RATIO * record["source_tokens"])
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + reward)


def test_a_length_reward_is_recorded_and_verified(rewarded: Translated) -> None:
    for record in rewarded.records:
        assert record["penalties"]["length_reward"] == REWARD
    verified = {record["verified"] for record in rewarded.records}
    assert verified in ({True}, {True, None})  # None: nothing is certified of the output


@pytest.mark.parametrize("search", ["beam", "exact"])
def test_a_length_reward_of_0_changes_nothing(toy_run: Path, tmp_path: Path, search: str) -> None:
    options = ["-beam_size", 4, "-n_best", 3, "-search", search, "-verify"]
    plain = translate(toy_run, tmp_path, "a b c\nd e\na\n", *options)
    zero = translate(toy_run, tmp_path, "a b c\nd e\na\n", *options, "-length_reward", 0)
    assert zero.records == plain.records
