"""`onmt-entmax score`: the records of pairs, and what is printed of them."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import SparseNMTModel
from tests.cli.scoring import VOCABULARIES, Record, score_lines, tokens_of, write_model

# --- records ---


class ScoredPair(NamedTuple):
    """A pair and its record.

    Attributes:
        target: the tokens of the target, and the end symbol.
        record: the record of the command.
        expected: the log-probability of each token in a training pass; -inf: it is impossible.
    """

    target: list[str]
    record: Record
    expected: list[float]

    @property
    def is_possible(self) -> bool:
        return -math.inf not in self.expected


class Scored(NamedTuple):
    """Scored pairs, some of them impossible, and what was printed."""

    pairs: list[ScoredPair]
    printed: str


def training_log_probs(model: SparseNMTModel, source: str, target: str) -> list[float]:
    """Return the log-probabilities of the target and the end symbol."""
    source_ids = VOCABULARIES.source.encode(source.split())
    target_ids = VOCABULARIES.target.encode(target.split())
    batch = make_batch([Example(source_ids, target_ids, 0)], VOCABULARIES)
    with torch.no_grad():
        hidden, gold = model.hidden_states(batch)
        log_probs = model.generator.log_probs(hidden)
    expected: list[float] = log_probs.gather(1, gold[:, None])[:, 0].tolist()
    return expected


@pytest.fixture
def scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scored:
    model = write_model(tmp_path / "model", 0)
    sources = ["a b a", "b", "a a a a", "b a"]
    targets = ["x y", "z", "", "x x y z"]
    records = score_lines(tmp_path, tmp_path / "model", source=sources, target=targets)
    pairs = []
    for source, target, record in zip(sources, targets, records, strict=True):
        expected = training_log_probs(model, source, target)
        pairs.append(ScoredPair([*target.split(), "</s>"], record, expected))
    return Scored(pairs, capsys.readouterr().out)


def test_records_stand_in_the_order_of_the_file(scored: Scored) -> None:
    assert [pair.record["id"] for pair in scored.pairs] == [0, 1, 2, 3]


def test_a_record_has_a_step_for_each_token_and_the_end(scored: Scored) -> None:
    for pair in scored.pairs:
        assert tokens_of(pair.record) == pair.target


def test_scores_are_those_of_training(scored: Scored) -> None:
    """An impossible token has null."""
    for pair in scored.pairs:
        log_probs = [step["log_prob"] for step in pair.record["steps"]]
        numbers = [-math.inf if log_prob is None else log_prob for log_prob in log_probs]
        assert numbers == pytest.approx(pair.expected, abs=1e-5)


def test_the_first_impossible_token_excludes_a_target(scored: Scored) -> None:
    impossible = [pair for pair in scored.pairs if not pair.is_possible]
    assert 0 < len(impossible) < len(scored.pairs)
    for pair in impossible:
        assert pair.record["excluded_at"] == pair.expected.index(-math.inf)
        assert pair.record["log_prob"] is None


def test_a_possible_target_has_a_log_probability(scored: Scored) -> None:
    possible = [pair for pair in scored.pairs if pair.is_possible]
    assert possible
    for pair in possible:
        assert pair.record["excluded_at"] is None
        assert pair.record["log_prob"] == pytest.approx(sum(pair.expected), abs=1e-4)


def test_possible_targets_are_counted(scored: Scored) -> None:
    possible = [pair for pair in scored.pairs if pair.is_possible]
    assert f"possible {len(possible)} " in scored.printed


class TestTokensThatNoOutputCanHave:
    """An unknown token, `ö`, and the start symbol."""

    @pytest.fixture
    def records(self, tmp_path: Path) -> list[Record]:
        """Records of two targets with one of these tokens each, and of a target without."""
        write_model(tmp_path / "model", 0)
        target = ["x ö", "<s> y", "x"]
        return score_lines(tmp_path, tmp_path / "model", source=["a b"] * 3, target=target)

    @pytest.mark.parametrize(("line", "position", "token"), [(0, 1, "ö"), (1, 0, "<s>")])
    def test_exclude_a_target(
        self, records: list[Record], line: int, position: int, token: str
    ) -> None:
        record = records[line]
        assert (record["log_prob"], record["excluded_at"]) == (None, position)
        step = record["steps"][position]
        assert (step["token"], step["log_prob"]) == (token, None)
        assert step["rank"] == step["support"] + 1  # behind all possible tokens

    @pytest.mark.parametrize(("line", "token"), [(0, "ö"), (1, "<s>")])
    def test_are_counted_in_a_record(self, records: list[Record], line: int, token: str) -> None:
        assert records[line]["unknown_target"] == {token: 1}

    def test_are_not_counted_where_there_are_none(self, records: list[Record]) -> None:
        assert "unknown_target" not in records[2]

    def test_give_a_warning(
        self, capsys: pytest.CaptureFixture[str], records: list[Record]
    ) -> None:
        printed = capsys.readouterr()
        assert "possible 1 (33.33%)" in printed.out
        assert "target tokens" in printed.err
