"""`onmt-entmax bleu --tune length_reward` measures BLEU under length rewards, from one report."""

import json
import math
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sacrebleu import corpus_bleu

from onmt_entmax.cli import bleu
from tests.cli.translations import write_translations
from tests.commands import succeed
from tests.in_process import refusal


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reference and two systems; tests only read it."""
    folder = tmp_path_factory.mktemp("texts")
    write_translations(folder)
    return folder


Record = dict[str, Any]


def random_hypotheses(candidates: set[str], generator: random.Random) -> list[Record]:
    """Return three of the candidates with falling probabilities; the shorter ones tend to lead."""
    chosen = generator.sample(sorted(candidates), 3)
    chosen.sort(key=lambda text: len(text) + 20 * generator.random())
    probs = sorted((generator.uniform(0.01, 0.3) for _ in chosen), reverse=True)
    return [
        {"text": text.replace(" ", ""), "tokens": text, "prob": prob, "log_prob": math.log(prob)}
        for text, prob in zip(chosen, probs, strict=True)
    ]


WITHOUT_OUTPUT = 7  # the sentence of whose search nothing ended
OUTCOMES = [("exhaustive", 0.0), ("none", 0.4), ("optimal", 0.005)]  # certificates and bounds


def random_record(
    number: int, reference: str, systems: list[str], generator: random.Random
) -> Record:
    """Return a record of a sentence, with a list of three in which the longer tend to be right.

    Of sentences with odd numbers, one more output had ended than the list has.
    """
    beginnings = {reference[: len(reference) // 2], "", systems[0][: 3 * len(systems[0]) // 4]}
    hypotheses = random_hypotheses({reference, *systems, *beginnings}, generator)
    certificate, bound = generator.choice(OUTCOMES)
    if number == WITHOUT_OUTPUT:
        certificate, bound, hypotheses = "none", 0.5, []
    return {
        "id": number,
        "source": "s",
        "certificate": certificate,
        "bound": bound,
        "mass": 0.5,
        "finished": len(hypotheses) + number % 2,
        "hypotheses": hypotheses,
        "unfinished": reference,
        "source_tokens": generator.randint(1, 14),
        "dropped": 0,
    }


def random_report(texts: Path) -> list[Record]:
    """Return a record for each sentence of `texts`."""
    generator = random.Random(9)
    lines = [(texts / name).read_text().splitlines() for name in ("ref", "one", "two")]
    return [
        random_record(number, reference, systems, generator)
        for number, (reference, *systems) in enumerate(zip(*lines, strict=True))
    ]


class Tuned(NamedTuple):
    """A report, references without spaces, and what the command measured and printed."""

    records: list[Record]
    references: list[str]
    rows: list[Record]
    printed: str


@pytest.fixture(scope="module")
def tuned(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    folder = tmp_path_factory.mktemp("tuned")
    records = random_report(texts)
    (folder / "report").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    references = (texts / "ref").read_text().replace(" ", "").replace(".", " . ").splitlines()
    (folder / "ref").write_text("\n".join(references) + "\n")
    options = ["--tune", "length_reward", "--tokenize", "char", "--output", folder / "json"]
    files = ["bleu", folder / "report", "--reference", folder / "ref"]
    printed = succeed("onmt_entmax", *files, *options)
    return Tuned(records, references, json.loads((folder / "json").read_text())["rewards"], printed)


ROUNDING = 1e-12  # of a sum in float64


class Chosen(NamedTuple):
    """The output of a record under a length reward."""

    text: str
    is_proven: bool
    """Whether nothing that is not listed may have a higher score."""


def choose(record: Record, reward: float, ratio: float) -> Chosen:
    """Choose among the hypotheses of a record, by the definition of the reward.

    The score of y, of |y| tokens with the end symbol, for a source of |x| tokens is
    log p(y) + min(reward * |y|, reward * ratio * |x|). So no unlisted output has more than the log
    of its probability and the largest reward.
    """
    if not record["hypotheses"]:
        return Chosen(record["unfinished"], is_proven=False)
    largest_reward = reward * ratio * record["source_tokens"]

    def score_of(hypothesis: Record) -> float:
        length = len(hypothesis["tokens"].split()) + 1  # with the end symbol
        log_prob: float = hypothesis["log_prob"]
        return log_prob + min(reward * length, largest_reward)

    best = max(record["hypotheses"], key=score_of)
    largest = score_of(best) - largest_reward + ROUNDING
    is_proven = all(largest >= math.log(prob) for prob in unlisted_probabilities(record))
    return Chosen(best["text"], is_proven)


def unlisted_probabilities(record: Record) -> list[float]:
    """Return the largest probabilities that outputs which are not listed may have."""
    probs = []
    if record["certificate"] != "exhaustive":
        probs.append(record["bound"])  # of those that the search did not follow
    if record["finished"] > len(record["hypotheses"]):
        probs.append(record["hypotheses"][-1]["prob"])  # of those that it found
    return probs


def choices(row: Record, records: list[Record]) -> list[Chosen]:
    """Return the output of each record under the reward of a row."""
    return [choose(record, row["length_reward"], row["length_ratio"]) for record in records]


def test_rewards_are_tried_once_each_and_none_first(tuned: Tuned) -> None:
    assert tuned.rows[0]["length_reward"] == 0
    rewards = {(row["length_reward"], row["length_ratio"]) for row in tuned.rows}
    assert len(rewards) == len(tuned.rows) > 9


def test_a_reward_has_the_bleu_of_the_outputs_that_it_chooses(tuned: Tuned) -> None:
    for row in tuned.rows:
        outputs = [chosen.text for chosen in choices(row, tuned.records)]
        expected = corpus_bleu(outputs, [tuned.references], tokenize="char").score
        assert row["bleu"] == pytest.approx(expected, abs=1e-9)


def test_a_reward_has_the_share_of_proven_outputs(tuned: Tuned) -> None:
    for row in tuned.rows:
        proven = sum(chosen.is_proven for chosen in choices(row, tuned.records))
        assert row["proven"] == proven / len(tuned.records)
    assert len({row["proven"] for row in tuned.rows}) > 1


def test_the_best_reward_is_printed(tuned: Tuned) -> None:
    best = max(tuned.rows, key=lambda row: row["bleu"])
    assert best["length_reward"] > 0
    assert f"best: -length_reward {best['length_reward']:g} -length_ratio" in tuned.printed


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        pytest.param(
            {"penalties": {"length_penalty": "avg"}},
            [],
            "report:1: not a record of `translate`",
            id="penalty",
        ),
        pytest.param(
            {"hypotheses": [{"text": "a", "prob": 0.5}]},
            [],
            "report:1: not a record of `translate`",
            id="no log-probability",
        ),
        pytest.param({"gap": math.inf}, [], "report:1: not JSON", id="infinity"),
        pytest.param({"gap": "1e400"}, [], "report:1: not JSON", id="too large for a float"),
        pytest.param(
            {"mbr": {}}, [], "report:1: not a record of an -exactness_report", id="empty decision"
        ),
        pytest.param(
            {"hypotheses": []},
            [],
            "report: has no n-best lists: translate with -n_best 30",
            id="no hypotheses",
        ),
        pytest.param({}, ["--metrics", "ter"], "and no --nbest, --report", id="other measure"),
        pytest.param({}, ["one"], "--tune takes one report as SYSTEM", id="two systems"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Record,
    more: list[str],
    message: str,
) -> None:
    """In JSON, a number may be too large for a float: 1e400, here without its quotes."""
    monkeypatch.chdir(tmp_path)
    first, *_ = random_report(texts)
    Path("report").write_text(json.dumps(first | change).replace('"1e400"', "1e400"))
    Path("ref").write_text("a\n")
    command = ["report", *more, "--reference", "ref", "--tune", "length_reward", "--output", "o"]
    assert message in refusal(bleu.main, command)
    assert not Path("o").exists()


def test_a_record_without_the_length_of_its_source_is_refused(texts: Path, tmp_path: Path) -> None:
    """A reward depends on it."""
    first, *_ = random_report(texts)
    del first["source_tokens"]
    report = tmp_path / "report"
    report.write_text(json.dumps(first))
    (tmp_path / "ref").write_text("a\n")
    command = [str(report), "--reference", str(tmp_path / "ref"), "--tune", "length_reward"]
    assert "report:1: not a record of `translate` without penalties" in refusal(bleu.main, command)
