"""`tools.papers.figures sparsity`: how many probabilities and attention weights are positive."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.report.lattice import Node
from onmt_entmax.translator import Translator
from tests.in_process import success
from tests.papers.figure_models import SOURCES, TARGETS, write_model
from tests.papers.texts import write_texts
from tools.papers import figures, sparsity
from tools.papers.forced_steps import ParallelText, read_pairs, steps_of


class Measured(NamedTuple):
    """A folder with a model and its measures, and what the command printed."""

    folder: Path
    """It has `model`, the sentence pairs, `counts.json` and `counts.png`."""
    alpha: float
    printed: str

    def forced(self) -> dict[str, Any]:
        """Return the measures along the targets, which the model is made to write."""
        content = json.loads((self.folder / "counts.json").read_text())
        forced: dict[str, Any] = content["model"]["forced"]
        return forced


@pytest.fixture(scope="module", params=[1.0, 1.5], ids=["softmax", "entmax"])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("sparsity")
    model = write_model(folder / "model", request.param)
    texts = write_texts(folder, SOURCES, TARGETS)
    printed = success(figures.main, ["sparsity", model, *texts, "--output", folder / "counts"])
    return Measured(folder, request.param, printed)


# --- counts, beside those of the lattices ----------------------------------------------------


class Step(NamedTuple):
    """A step of a target that the model is made to write."""

    source_length: int
    position: int
    node: Node


@pytest.fixture(scope="module")
def steps(measured: Measured) -> list[Step]:
    """All steps of the targets, from the lattice of each."""
    model = measured.folder / "model"
    return [
        Step(len(source.split()), position, node)
        for source, target in zip(SOURCES, TARGETS, strict=True)
        for position, node in enumerate(figures.sentence([model], source, target).nodes, 1)
    ]


def expected_counts(measured: Measured, steps: list[Step], layer: str) -> list[int]:
    """Return the number of nonzeros at each step.

    Softmax attends to all positions, even where a weight rounds to zero.
    """
    if layer == "output":
        return [step.node.support for step in steps]
    if measured.alpha == 1:
        return [step.source_length for step in steps]
    return [sum(weight > 0 for weight in step.node.attention) for step in steps]


each_layer = pytest.mark.parametrize("layer", ["output", "attention"])


@each_layer
def test_nonzeros_are_those_of_the_distributions(
    measured: Measured, steps: list[Step], layer: str
) -> None:
    counts = expected_counts(measured, steps, layer)
    measures = measured.forced()[layer]
    assert measures["steps"] == len(counts)
    assert measures["mean"] == pytest.approx(sum(counts) / len(counts))
    assert measures["most"] == max(counts)
    assert measures["share_of_one"] == pytest.approx(counts.count(1) / len(counts))


@each_layer
def test_nonzeros_by_position_are_means_over_the_steps_there(
    measured: Measured, steps: list[Step], layer: str
) -> None:
    counts = expected_counts(measured, steps, layer)
    first = [count for count, step in zip(counts, steps, strict=True) if step.position == 1]
    by_position = measured.forced()[layer]["by_position"]
    assert by_position["1"]["mean"] == pytest.approx(sum(first) / len(first))


@each_layer
def test_every_target_has_a_step_at_its_end_symbol(measured: Measured, layer: str) -> None:
    assert measured.forced()[layer]["by_rank"]["end"]["steps"] == len(TARGETS)


def test_nonzeros_do_not_depend_on_the_batch_size(measured: Measured) -> None:
    folder = measured.folder
    translator = Translator.from_folders([folder / "model"], attention=True)
    text = ParallelText(folder / "source.txt", folder / "target.txt")
    pairs = read_pairs(translator, text)
    one, three = (sorted(steps_of(translator, pairs, size)) for size in (1, 3))
    assert one == three


# --- the table and the figure ----------------------------------------------------------------


def test_mean_nonzeros_are_printed(measured: Measured) -> None:
    """The row of the model has a mean and a share for attention, and then for the output."""
    forced = measured.forced()
    heading, row = (line for line in measured.printed.splitlines() if line.startswith("| model | "))
    assert heading.startswith("| model | # attended, forced")
    figures = (forced[layer] for layer in ("attention", "output"))
    cells = (f"{layer['mean']:.2f} | {layer['share_of_one']:.1%}" for layer in figures)
    assert " | ".join(cells) in row


def test_nonzeros_are_drawn(measured: Measured) -> None:
    assert (measured.folder / "counts.png").read_bytes().startswith(b"\x89PNG")


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
