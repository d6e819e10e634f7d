"""`onmt-entmax bleu --report` measures the outputs that a rule of their certificates keeps."""

import json
from typing import NamedTuple

import pytest

from tests.commands import succeed
from tests.reports import record


class Measured(NamedTuple):
    """What is measured of the outputs that a rule keeps."""

    share: float
    """Share of all sentences that the rule keeps."""
    bleu: float | None


@pytest.fixture(scope="module")
def by_rule(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    """Measures by rule: of two outputs, the right one has probability 0.95, the wrong one 0.4.

    Each was chosen by minimum Bayes risk; the first hypothesis of its record is another. Two
    hypotheses have its text, and their probabilities count together.
    """
    folder = tmp_path_factory.mktemp("coverage")
    right = "the cat sat on the mat today"
    (folder / "ref").write_text(f"{right}\na dog ran over the green grass\n")
    (folder / "out").write_text(f"{right}\nnothing of the kind here now\n")
    records = []
    for prob in (0.95, 0.4):
        hypotheses = [("other", 0.04), ("chosen", prob / 2), ("chosen", prob / 2)]
        decision = {"ranking": [{"text": "chosen"}]}
        records.append(record("source", "optimal", *hypotheses, bound=0.1, mbr=decision))
    (folder / "report").write_text("".join(f"{line}\n" for line in records))
    options = ["--reference", folder / "ref", "--report", folder / "report"]
    succeed("onmt_entmax", "bleu", folder / "out", *options, "--output", folder / "json")
    curve = json.loads((folder / "json").read_text())["coverage"]
    return {point["rule"]: Measured(point["share"], point["quality"]) for point in curve}


def test_likely_outputs_have_a_bleu_of_their_own(by_rule: dict[str, Measured]) -> None:
    assert by_rule["p >= 0.9"] == Measured(0.5, pytest.approx(100))


def test_a_rule_may_keep_all_outputs(by_rule: dict[str, Measured]) -> None:
    assert by_rule["all"].share == 1.0


def test_no_output_has_no_bleu(by_rule: dict[str, Measured]) -> None:
    """No search of the report was exhaustive."""
    assert by_rule["exhaustive"] == Measured(0.0, None)
