"""`tools.papers.figures sparsity`: how many probabilities and attention weights are positive."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.report.lattice import Node
from onmt_entmax.translator import Translator
from tests.in_process import exit_status
from tests.papers.figure_models import SOURCES, TARGETS, write_model
from tests.papers.texts import write_texts
from tools.papers import figures, sparsity
from tools.papers.forced_steps import ParallelText, read_pairs, steps_of


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written to the working directory."""
    monkeypatch.chdir(tmp_path)


class Step(NamedTuple):
    """A step of a target that the model is made to write."""

    source_length: int
    position: int
    node: Node


def lattice_steps(model: Path) -> list[Step]:
    """Return all steps of the targets, from the lattice of each."""
    return [
        Step(len(source.split()), position, node)
        for source, target in zip(SOURCES, TARGETS, strict=True)
        for position, node in enumerate(figures.sentence([model], source, target).nodes, 1)
    ]


class Sparsity(NamedTuple):
    """A model, and what the command measured and printed of it."""

    alpha: float
    model: Path
    measured: dict[str, Any]
    printed: str


@pytest.fixture(params=[1.0, 1.5], ids=["softmax", "entmax"])
def sparse(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Sparsity:
    model = write_model(Path("model"), request.param)
    texts = write_texts(Path(), SOURCES, TARGETS)
    assert exit_status(figures.main, ["sparsity", str(model), *texts, "--output", "counts"]) == 0
    measured = json.loads(Path("counts.json").read_text())["model"]["forced"]
    return Sparsity(request.param, model, measured, capsys.readouterr().out)


def check_counts(measured: dict[str, Any], counts: list[int], steps: list[Step]) -> None:
    """Fail unless the measures are those of a count at each step."""
    first = [count for count, step in zip(counts, steps, strict=True) if step.position == 1]
    assert measured["steps"] == len(counts)
    assert measured["mean"] == pytest.approx(sum(counts) / len(counts))
    assert measured["most"] == max(counts)
    assert measured["share_of_one"] == pytest.approx(counts.count(1) / len(counts))
    assert measured["by_position"]["1"]["mean"] == pytest.approx(sum(first) / len(first))
    assert measured["by_rank"]["end"]["steps"] == len(TARGETS)


def test_nonzeros_of_the_output_are_those_of_the_distributions(sparse: Sparsity) -> None:
    steps = lattice_steps(sparse.model)
    check_counts(sparse.measured["output"], [step.node.support for step in steps], steps)


def test_nonzeros_of_attention_are_those_of_the_distributions(sparse: Sparsity) -> None:
    """Softmax attends to all, even where a weight rounds to zero."""
    steps = lattice_steps(sparse.model)
    if sparse.alpha == 1:
        counts = [step.source_length for step in steps]
    else:
        counts = [sum(weight > 0 for weight in step.node.attention) for step in steps]
    check_counts(sparse.measured["attention"], counts, steps)


def test_nonzeros_are_printed_and_drawn(sparse: Sparsity) -> None:
    assert "| model |" in sparse.printed
    assert Path("counts.png").stat().st_size > 1000


def test_nonzeros_do_not_depend_on_the_batch_size(sparse: Sparsity) -> None:
    translator = Translator.from_folders([sparse.model], attention=True)
    pairs = read_pairs(translator, ParallelText(Path("source.txt"), Path("target.txt")))
    one, three = (sorted(steps_of(translator, pairs, size)) for size in (1, 3))
    assert one == three


# --- classes of tokens -----------------------------------------------------------------------

UNKNOWN, END, FIRST = 0, 3, 4  # ids of <unk>, </s> and the most frequent token


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (FIRST, "1-10"),
        (FIRST + 9, "1-10"),
        (FIRST + 10, "11-100"),
        (FIRST + 99, "11-100"),
        (FIRST + 100, "101-1000"),
        (FIRST + 9999, "1001-10000"),
        (FIRST + 10_000, "10001-"),
        (END, "end"),
        (UNKNOWN, "unknown"),
    ],
)
def test_a_token_is_counted_in_the_class_of_its_frequency_rank(token: int, name: str) -> None:
    assert sparsity.rank_class(token, END) == name
