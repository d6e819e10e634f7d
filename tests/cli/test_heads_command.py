"""`onmt-entmax heads`: it measures what the model attends to, and draws it."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import heads as command
from onmt_entmax.errors import UserError
from onmt_entmax.figures.head_pictures import draw_trajectories
from onmt_entmax.figures.heads import attend, head_alphas, measure
from onmt_entmax.model import build_model
from onmt_entmax.nn.transformer import KINDS, attentions, initialise_alphas
from tests.models import small, small_transformer, words

VOCABULARIES = words(["who", "is", "b￭", "c", "￭?", "￭."], "uvw")
SOURCES = ["c", "who is b￭ c ￭?", "c is who ￭.", "b￭ c is c ￭."]
TARGETS = ["", "u v", "w u", "v v w u"]
ALPHAS = {"softmax": 1.0, "learned": "learned"}


def write_model(folder: Path, alpha: float | str, self_attn_type: str = "scaled-dot"):
    torch.manual_seed(0)
    config = small_transformer(
        encoder_attention_alpha=alpha,
        decoder_attention_alpha=1.0 if self_attn_type == "average" else alpha,
        self_attn_type=self_attn_type,
        context_attention_alpha=alpha,
        position_encoding=True,
        param_init=1.0,
    )
    model = build_model(config, VOCABULARIES).eval()
    initialise_alphas(model, 0.0, 2.0)
    save(folder, model, config, VOCABULARIES, {})
    return model


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, lines in (("src", SOURCES), ("tgt", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["--source", str(tmp_path / "src"), "--target", str(tmp_path / "tgt")]


def pairs() -> list[tuple[list[int], list[int]]]:
    source, target = VOCABULARIES
    return [
        (source.encode(s.split()), target.encode(t.split()))
        for s, t in zip(SOURCES, TARGETS, strict=True)
    ]


@pytest.mark.parametrize("alpha", ALPHAS.values())
def test_weights_of_a_batch_are_those_of_each_sentence_alone(tmp_path, alpha) -> None:
    model = write_model(tmp_path / "model", alpha)
    together = {each.index: each for each in attend(model, VOCABULARIES, pairs(), 4)}
    assert sorted(together) == [0, 1, 2, 3]
    for index, pair in enumerate(pairs()):
        (alone,) = attend(model, VOCABULARIES, [pair])
        assert alone.source == together[index].source == tuple(SOURCES[index].split())
        assert alone.target == together[index].target == ("<s>", *TARGETS[index].split())
        for kind, weights in alone.weights.items():
            queries, keys = (len(tokens) for tokens in alone.tokens(kind))
            assert weights.shape == (2, 2, queries, keys)
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
            np.testing.assert_allclose(together[index].weights[kind], weights, atol=1e-6)
    for layers in attentions(model).values():  # left as they were
        assert [layer._forward_hooks for layer in layers] == [{}, {}]


def test_tables_json_and_pictures_of_two_models(tmp_path, files, capsys, monkeypatch) -> None:
    models = {name: write_model(tmp_path / name, alpha) for name, alpha in ALPHAS.items()}
    out = tmp_path / "out"
    folders = [str(tmp_path / name) for name in ALPHAS]
    assert command.main([*folders, *files, "--language", "en", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    found = json.loads((out / "heads.json").read_text(encoding="utf-8"))
    for name, model in models.items():
        expected = measure(
            attend(model, VOCABULARIES, pairs()), head_alphas(model), frozenset({"who"})
        )
        assert found[name]["sentences"] == 4
        for kind, each in expected.items():
            np.testing.assert_allclose(found[name][kind]["density"], each.summary()["density"])
        asked = found[name]["encoder"]["interrogation"]
        assert (asked["words_in_questions"], asked["words_elsewhere"]) == (1, 1)
        assert f"| {name} |" in printed
    assert found["softmax"]["encoder"]["density"] == [[1.0, 1.0], [1.0, 1.0]]
    assert np.mean(found["learned"]["encoder"]["density"]) < 1
    names = ["alphas", "densities", "layers", "divergence", "positional", "merging"]
    for name in [*names, "interrogation"]:
        assert (out / f"{name}.png").stat().st_size > 1000
        assert (out / f"{name}.pdf").stat().st_size > 1000
    assert "positional head" in (out / "heads.md").read_text(encoding="utf-8")
    least = "Positional heads of the encoder, with confidence and alpha:\n\nnone\n\n"
    monkeypatch.setattr(command, "positional_heads", lambda *_: [])
    assert least in command.specialised(found)


def write_alphas(run: Path, kinds: Sequence[str]) -> None:
    rows = [
        {"kind": "alpha", "step": step, **{kind: [[1.1, 1.2]] * 2 for kind in kinds}}
        for step in (1, 2, 3)
    ]
    run.mkdir(exist_ok=True)
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_trajectories_of_a_run_are_drawn_and_no_question_without_its_words(tmp_path, files) -> None:
    write_model(tmp_path / "run" / "step_3", "learned")
    write_alphas(tmp_path / "run", KINDS)
    out = tmp_path / "out"
    assert command.main([str(tmp_path / "run"), *files, "--out", str(out)]) == 0
    assert (out / "trajectories.png").stat().st_size > 1000
    assert not (out / "interrogation.png").exists()


def test_trajectories_of_some_kinds(tmp_path) -> None:
    write_alphas(tmp_path / "run", ["context"])
    steps, alphas = command.trajectories(tmp_path / "run")
    assert (steps, list(alphas), alphas["context"].shape) == ([1, 2, 3], ["context"], (3, 2, 2))
    lines = [len(axis.lines) for axis in draw_trajectories(steps, alphas).axes]
    assert lines == [4 * (kind == "context") for kind in KINDS]


def test_sentences_of_one_token_leave_no_choice(tmp_path, files) -> None:
    write_model(tmp_path / "model", "learned")
    arguments = [str(tmp_path / "model"), *files, "--out", str(tmp_path / "out")]
    with pytest.raises(UserError, match="no sentence has two tokens"):
        command.main([*arguments, "--limit", "1"])


def test_average_attention_has_no_heads(tmp_path, files) -> None:
    write_model(tmp_path / "model", 1.5, self_attn_type="average")
    with pytest.raises(UserError, match="model: has average attention"):
        command.main([str(tmp_path / "model"), *files, "--out", str(tmp_path / "out")])


def test_a_recurrent_model_has_no_heads(tmp_path, files) -> None:
    config = small()
    model = build_model(config, VOCABULARIES)
    save(tmp_path / "model", model, config, VOCABULARIES, {})
    with pytest.raises(UserError, match="model: is no Transformer"):
        command.main([str(tmp_path / "model"), *files, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
