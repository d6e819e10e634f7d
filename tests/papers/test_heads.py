"""`tools.papers.heads`: the attention of models' heads, and what the command writes of it."""

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from onmt_entmax.checkpoint import LoadedModel, load, save
from onmt_entmax.model import build_model
from onmt_entmax.nn.transformer import KINDS, alpha_parameters, attentions
from tests.models import small_transformer, vocabularies_of
from tests.papers.texts import write_texts
from tools.papers import heads
from tools.papers.alpha_trajectory import read_trajectory
from tools.papers.head_attention import attend

VOCABULARIES = vocabularies_of(["who", "is", "b￭", "c", "￭?", "￭."], "uvw")
SOURCES = ["c", "who is b￭ c ￭?", "c is who ￭.", "b￭ c is c ￭."]
TARGETS = ["", "u v", "w u", "v v w u"]
PAIRS = [
    (source.split(), VOCABULARIES.target.encode(target.split()))
    for source, target in zip(SOURCES, TARGETS, strict=True)
]
ALPHAS = {"softmax": 1.0, "learned": "learned"}


def write_model(folder: Path, alpha: float | str) -> None:
    torch.manual_seed(0)
    kinds = {f"{kind}_attention_alpha": alpha for kind in KINDS}
    config = small_transformer(**kinds, position_encoding=True, param_init=1.0)
    model = build_model(config, VOCABULARIES).eval()
    for a in alpha_parameters(model):
        torch.nn.init.normal_(a, 0.0, 2.0)
    save(folder, model, config, VOCABULARIES, {})


@pytest.fixture(params=ALPHAS.values(), ids=ALPHAS)
def loaded(request: pytest.FixtureRequest, tmp_path: Path) -> LoadedModel:
    write_model(tmp_path / "model", request.param)
    return load(tmp_path / "model")


def test_weights_of_a_batch_are_those_of_each_sentence_alone(loaded: LoadedModel) -> None:
    together = dict(attend(loaded, PAIRS, 4))
    assert sorted(together) == [0, 1, 2, 3]
    for index, pair in enumerate(PAIRS):
        ((_, alone),) = attend(loaded, [pair])
        for kind, weights in alone.items():
            np.testing.assert_allclose(together[index][kind], weights, atol=1e-6)


def test_weights_are_distributions_of_layers_heads_and_queries(loaded: LoadedModel) -> None:
    for source, target in PAIRS:
        steps = len(target) + 1
        sizes = {
            "encoder": (len(source), len(source)),
            "decoder": (steps, steps),
            "context": (steps, len(source)),
        }
        ((_, attention),) = attend(loaded, [(source, target)])
        for kind, weights in attention.items():
            assert weights.shape == (2, 2, *sizes[kind])
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_no_hook_is_left_in_the_model(loaded: LoadedModel) -> None:
    list(attend(loaded, PAIRS))
    for layers in attentions(loaded.model).values():
        assert [layer._forward_hooks for layer in layers] == [{}, {}]


# --- the command -----------------------------------------------------------------------------


class Run(NamedTuple):
    """What the command printed and wrote of a model with softmax and one with learned alphas."""

    printed: str
    folder: Path
    measured: Mapping[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("heads")
    for name, alpha in ALPHAS.items():
        write_model(folder / name / "step_3", alpha)
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


def test_densities_of_the_models(run: Run) -> None:
    assert run.measured["softmax"]["encoder"]["density"] == [[1.0, 1.0], [1.0, 1.0]]
    assert np.mean(run.measured["learned"]["encoder"]["density"]) < 1


@pytest.mark.parametrize("ending", ["png", "pdf"])
@pytest.mark.parametrize(
    "name",
    "alphas densities layers divergence positional merging interrogation trajectories".split(),
)
def test_every_picture_is_drawn(run: Run, name: str, ending: str) -> None:
    assert (run.folder / f"{name}.{ending}").stat().st_size > 1000


def test_a_log_without_alphas_of_attention_has_no_trajectory(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "alpha", "step": 1, "other": [[1.1]]}\n')
    assert read_trajectory(tmp_path) is None


def test_a_page_has_the_specialised_heads(run: Run) -> None:
    assert "positional head" in (run.folder / "heads.md").read_text(encoding="utf-8")
