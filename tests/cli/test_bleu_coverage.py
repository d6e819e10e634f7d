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
    """Measures by rule, of a right output with probability 0.95 and a wrong one with 0.4.

    Minimum Bayes risk chose both. In each record, another hypothesis stands first, and two
    hypotheses have the text of the output, so their probabilities are added.
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


def test_bleu_is_that_of_the_outputs_that_a_rule_keeps(by_rule: dict[str, Measured]) -> None:
    assert by_rule["p >= 0.9"] == Measured(0.5, pytest.approx(100))


def test_a_rule_may_keep_all_outputs(by_rule: dict[str, Measured]) -> None:
    assert by_rule["all"].share == 1.0


def test_a_rule_that_keeps_no_output_has_no_bleu(by_rule: dict[str, Measured]) -> None:
    """No search of the report was exhaustive."""
    assert by_rule["exhaustive"] == Measured(0.0, None)
