"""`onmt-entmax score`: the records of pairs, and the scores of ensembles."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from tests.cli.scoring import VOCABULARIES, Record, score_lines, tokens_of, write_model
from tests.models import vocabularies_of

# --- records ---


class ScoredPair(NamedTuple):
    """A pair, its record, and the log-probabilities of its target and end in a training pass."""

    target: list[str]
    record: Record
    expected: list[float]
    """-inf of an impossible token."""

    @property
    def is_possible(self) -> bool:
        return -math.inf not in self.expected


class ScoredFile(NamedTuple):
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
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> ScoredFile:
    model = write_model(tmp_path / "model", 0)
    source = ["a b a", "b", "a a a a", "b a"]
    target = ["x y", "z", "", "x x y z"]
    records = score_lines(tmp_path, tmp_path / "model", source=source, target=target)
    pairs = [
        ScoredPair([*tgt.split(), "</s>"], record, expected=training_log_probs(model, src, tgt))
        for src, tgt, record in zip(source, target, records, strict=True)
    ]
    return ScoredFile(pairs, capsys.readouterr().out)


def test_records_stand_in_the_order_of_the_file(file: ScoredFile) -> None:
    assert [pair.record["id"] for pair in file.pairs] == [0, 1, 2, 3]


def test_a_record_has_a_step_for_each_token_and_the_end(file: ScoredFile) -> None:
    for pair in file.pairs:
        assert tokens_of(pair.record) == pair.target


def test_scores_are_those_of_training(file: ScoredFile) -> None:
    """An impossible token has null."""
    for pair in file.pairs:
        log_probs = [step["log_prob"] for step in pair.record["steps"]]
        numbers = [-math.inf if log_prob is None else log_prob for log_prob in log_probs]
        assert numbers == pytest.approx(pair.expected, abs=1e-5)


def test_the_first_impossible_token_excludes_a_target(file: ScoredFile) -> None:
    impossible = [pair for pair in file.pairs if not pair.is_possible]
    assert 0 < len(impossible) < len(file.pairs)
    for pair in impossible:
        assert pair.record["excluded_at"] == pair.expected.index(-math.inf)
        assert pair.record["log_prob"] is None


def test_a_possible_target_has_a_log_probability(file: ScoredFile) -> None:
    possible = [pair for pair in file.pairs if pair.is_possible]
    assert possible
    for pair in possible:
        assert pair.record["excluded_at"] is None
        assert pair.record["log_prob"] == pytest.approx(sum(pair.expected), abs=1e-4)


def test_possible_targets_are_counted(file: ScoredFile) -> None:
    possible = [pair for pair in file.pairs if pair.is_possible]
    assert f"possible {len(possible)} " in file.printed


class TestTokensThatNoOutputHas:
    """An unknown one, `ö`, and the start symbol."""

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
        assert (step["token"], step["log_prob"], step["rank"]) == (token, None, step["support"] + 1)

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


# --- ensembles ---

OTHER_ORDER = vocabularies_of("ba", "zxy")


def token_probabilities(folder: Path, *models: Path) -> list[float]:
    """Return the probabilities of the tokens of `x` for `a b`, and of its end."""
    (record,) = score_lines(folder, *models, source=["a b"], target=["x"])
    log_probs = [step["log_prob"] for step in record["steps"]]
    return [0.0 if log_prob is None else math.exp(log_prob) for log_prob in log_probs]


@pytest.mark.parametrize("second", [VOCABULARIES, OTHER_ORDER], ids=["same ids", "other ids"])
def test_an_ensemble_is_scored_by_the_mean_of_the_probabilities(
    tmp_path: Path, second: Vocabularies
) -> None:
    write_model(tmp_path / "0", 0)
    write_model(tmp_path / "1", 1, second)
    models = (tmp_path / "0", tmp_path / "1")
    first, other = (token_probabilities(tmp_path, model) for model in models)
    expected = [(one + another) / 2 for one, another in zip(first, other, strict=True)]
    assert token_probabilities(tmp_path, *models) == pytest.approx(expected, abs=1e-5)
