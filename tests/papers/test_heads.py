"""`tools.papers.heads`: measures of the heads of two models, with tables, a page and pictures."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.in_process import success
from tests.papers.head_models import ALPHAS, SOURCES, TARGETS, write_heads
from tests.papers.texts import write_texts
from tools.papers import heads
from tools.papers.head_tables import by_layer, overview, specialised


class Run(NamedTuple):
    """A run of the command for two models: one with softmax, one with learned alphas.

    Attributes:
        printed: what it printed.
        folder: folder of the files that it wrote.
        measured: content of heads.json: measures by the name of the model.
    """

    printed: str
    folder: Path
    measured: Mapping[str, Any]

    @property
    def page(self) -> str:
        """The text of heads.md."""
        return (self.folder / "heads.md").read_text(encoding="utf-8")


def write_alphas(path: Path) -> None:
    """Write the log of a training that learned alphas, from which trajectories are drawn."""
    rows = [{"kind": "alpha", "step": n, "context": [[1.1, 1.2]] * 2} for n in (1, 2, 3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("heads")
    for name, alpha in ALPHAS.items():
        write_heads(folder / name / "step_3", alpha)
    write_alphas(folder / "learned" / "metrics.jsonl")
    models = [str(folder / name) for name in ALPHAS]
    texts = write_texts(folder, SOURCES, TARGETS)
    out = folder / "out"
    printed = success(heads.main, [*models, *texts, "--out", out, "--language", "en"])
    measured = json.loads((out / "heads.json").read_text(encoding="utf-8"))
    return Run(printed, out, measured)


# --- tables ---


@pytest.mark.parametrize("table", [overview, specialised])
def test_the_tables_of_the_written_measures_are_printed(
    run: Run, table: Callable[[Mapping[str, Any]], str]
) -> None:
    assert table(run.measured) in run.printed


@pytest.mark.parametrize("table", [overview, specialised, by_layer])
def test_a_page_has_the_tables_of_the_written_measures(
    run: Run, table: Callable[[Mapping[str, Any]], str]
) -> None:
    assert table(run.measured) in run.page


# --- measures ---


@pytest.mark.parametrize("name", ALPHAS)
def test_every_sentence_is_measured(run: Run, name: str) -> None:
    assert run.measured[name]["sentences"] == len(SOURCES)


@pytest.mark.parametrize("name", ALPHAS)
def test_question_words_are_counted_in_questions_and_elsewhere(run: Run, name: str) -> None:
    """The word is `who`, once in the only question and once in another sentence."""
    interrogation = run.measured[name]["encoder"]["interrogation"]
    assert interrogation["words_in_questions"] == 1
    assert interrogation["words_elsewhere"] == 1


def test_every_weight_of_softmax_counts_as_nonzero(run: Run) -> None:
    assert run.measured["softmax"]["encoder"]["density"] == [[1.0, 1.0], [1.0, 1.0]]


def test_some_weights_of_learned_alphas_are_zero(run: Run) -> None:
    assert np.mean(run.measured["learned"]["encoder"]["density"]) < 1


# --- pictures ---


@pytest.mark.parametrize(("ending", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
@pytest.mark.parametrize(
    "name",
    "alphas densities layers divergence positional merging interrogation trajectories".split(),
)
def test_every_picture_is_drawn(run: Run, name: str, ending: str, start: bytes) -> None:
    content = (run.folder / f"{name}.{ending}").read_bytes()
    assert content.startswith(start)
    assert len(content) > 1000, "more than an empty page"
