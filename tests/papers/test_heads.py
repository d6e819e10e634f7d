"""`tools.papers.heads`: tables, measures, pictures and a page about the heads of two models."""

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.papers.head_models import ALPHAS, SOURCES, TARGETS, write_heads
from tests.papers.texts import write_texts
from tools.papers import heads


class Run(NamedTuple):
    """What the command printed and wrote of a model with softmax and one with learned alphas."""

    printed: str
    folder: Path
    measured: Mapping[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("heads")
    for name, alpha in ALPHAS.items():
        write_heads(folder / name / "step_3", alpha)
    rows = [{"kind": "alpha", "step": n, "context": [[1.1, 1.2]] * 2} for n in (1, 2, 3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "learned" / "metrics.jsonl").write_text(lines)
    models = [str(folder / name) for name in ALPHAS]
    texts = write_texts(folder, SOURCES, TARGETS)
    with redirect_stdout(io.StringIO()) as printed:
        options = ["--out", str(folder / "out"), "--language", "en"]
        assert heads.main([*models, *texts, *options]) == 0
    measured = json.loads((folder / "out" / "heads.json").read_text(encoding="utf-8"))
    return Run(printed.getvalue(), folder / "out", measured)


@pytest.mark.parametrize("name", ALPHAS)
def test_a_printed_table_has_every_model(run: Run, name: str) -> None:
    assert f"| {name} |" in run.printed


@pytest.mark.parametrize("name", ALPHAS)
def test_question_words_are_counted_in_questions_and_elsewhere(run: Run, name: str) -> None:
    assert run.measured[name]["sentences"] == 4
    interrogation = run.measured[name]["encoder"]["interrogation"]
    assert interrogation["words_in_questions"] == 1
    assert interrogation["words_elsewhere"] == 1


def test_every_weight_of_softmax_counts_as_nonzero(run: Run) -> None:
    assert run.measured["softmax"]["encoder"]["density"] == [[1.0, 1.0], [1.0, 1.0]]


def test_some_weights_of_learned_alphas_are_zero(run: Run) -> None:
    assert np.mean(run.measured["learned"]["encoder"]["density"]) < 1


@pytest.mark.parametrize(("ending", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
@pytest.mark.parametrize(
    "name",
    "alphas densities layers divergence positional merging interrogation trajectories".split(),
)
def test_every_picture_is_drawn(run: Run, name: str, ending: str, start: bytes) -> None:
    content = (run.folder / f"{name}.{ending}").read_bytes()
    assert content.startswith(start)
    assert len(content) > 1000, "more than an empty page"


def test_a_page_has_the_specialised_heads(run: Run) -> None:
    assert "positional head" in (run.folder / "heads.md").read_text(encoding="utf-8")
