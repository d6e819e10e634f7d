"""`translate -length_reward`: scores, the record of the reward, and its verification."""

from pathlib import Path

import pytest

from tests.cli.translating import Record, Translated, UnsureLine, translate

REWARD = 0.7  # of each token
RATIO = 1.4  # rewarded tokens, at most, for each of the source
SEARCH = ["-beam_size", 4, "-n_best", 3, "-verify"]


@pytest.fixture(scope="module", params=["beam", "exact"])
def rewarded(
    request: pytest.FixtureRequest,
    toy_run: Path,
    unsure_lines: list[UnsureLine],
    tmp_path_factory: pytest.TempPathFactory,
) -> Translated:
    """Three lines, of which two have several outputs, with a length reward."""
    options = ["-search", request.param, "-length_reward", REWARD, "-length_ratio", RATIO]
    text = f"{unsure_lines[0].source}\n{unsure_lines[1].source}\na\n"
    return translate(toy_run, tmp_path_factory.mktemp("reward"), text, *SEARCH, *options)


def length_of(hypothesis: Record) -> int:
    """Return the number of a hypothesis's tokens, and of the end symbol.

    A record has the tokens only if they differ from the words of the text.
    """
    return len(hypothesis.get("tokens", hypothesis["text"]).split()) + 1


def test_a_score_has_a_reward_for_each_token_up_to_the_ratio(rewarded: Translated) -> None:
    """The end symbol is a token, too. The ratio is that of rewarded tokens to source tokens."""
    assert len(rewarded.records[0]["hypotheses"]) > 1
    for record in rewarded.records:
        for hypothesis in record["hypotheses"]:
            reward = REWARD * min(length_of(hypothesis), RATIO * record["source_tokens"])
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + reward)


def test_a_length_reward_is_recorded(rewarded: Translated) -> None:
    assert [record["penalties"]["length_reward"] for record in rewarded.records] == [REWARD] * 3


def test_certificates_under_a_length_reward_are_verified(rewarded: Translated) -> None:
    certified = [record for record in rewarded.records if record["certificate"] != "none"]
    assert certified
    assert all(record["verified"] for record in certified)


@pytest.mark.parametrize("search", ["beam", "exact"])
def test_a_length_reward_of_0_changes_nothing(toy_run: Path, tmp_path: Path, search: str) -> None:
    options = [*SEARCH, "-search", search]
    plain = translate(toy_run, tmp_path, "a b c\nd e\na\n", *options)
    zero = translate(toy_run, tmp_path, "a b c\nd e\na\n", *options, "-length_reward", 0)
    assert zero.records == plain.records
