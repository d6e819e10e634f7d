"""`tools.papers.heads`: measures against plain loops, and what the command writes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from onmt_entmax.checkpoint import load, save
from onmt_entmax.model import build_model
from onmt_entmax.nn.transformer import KINDS, alpha_parameters, attentions
from tests.models import small_transformer, words
from tools.papers import head_measures, heads

VOCABULARIES = words(["who", "is", "b￭", "c", "￭?", "￭."], "uvw")
SOURCES = ["c", "who is b￭ c ￭?", "c is who ￭.", "b￭ c is c ￭."]
TARGETS = ["", "u v", "w u", "v v w u"]
PAIRS = [
    (source.split(), VOCABULARIES.target.encode(target.split()))
    for source, target in zip(SOURCES, TARGETS, strict=True)
]
ALPHAS = {"softmax": 1.0, "learned": "learned"}


def sparse_weights(seed: int, heads: int, size: int, causal: bool = False) -> np.ndarray:
    """Random distributions with zeros of two layers; causal ones have nothing ahead."""
    generator = np.random.default_rng(seed)
    weights = generator.random((2, heads, size, size))
    weights[generator.random(weights.shape) < 0.5] = 0.0
    weights[..., range(size), range(size)] += 0.1
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(-1, keepdims=True)


def entropy(distribution: np.ndarray) -> float:
    return -sum(p * math.log(p) for p in distribution if p > 0)


@pytest.mark.parametrize("causal", [False, True])
def test_density_and_divergence_are_those_of_plain_loops(causal: bool) -> None:
    weights, kind = sparse_weights(1, 3, 5, causal), "decoder" if causal else "encoder"
    measures = heads.Measures(kind, np.full((2, 3), 1.5))
    measures.add(0, weights, ["a"] * 5)
    found = measures.summary()
    available = [query + 1 if causal else 5 for query in range(5)]
    for layer in range(2):
        differences = []
        for query, keys in enumerate(available):
            rows = weights[layer, :, query]
            if keys > 1:  # a single key leaves no choice
                spread = entropy(rows.mean(0)) - np.mean([entropy(row) for row in rows])
                differences.append(spread / math.log(keys))
        assert found["divergence"][layer] == pytest.approx(np.mean(differences))
        for head in range(3):
            counts = [(row > 0).sum() for row in weights[layer, head]]
            shares = [count / keys for count, keys in zip(counts, available, strict=True)]
            assert found["density"][layer][head] == pytest.approx(np.mean(shares))
            assert found["attended"][layer][head] == pytest.approx(np.mean(counts))


def test_clusters_are_words_of_subwords_with_their_hyphens() -> None:
    joiner = ["ein", "Fuß￭", "ball￭", "er", "￭,", "rot￭", "￭-￭", "weiß", "￭."]
    assert heads.clusters(joiner) == [0, 1, 1, 1, 4, 5, 5, 5, 8]
    assert heads.clusters(["▁ein", "▁Fuß", "ball", "er", ".", "▁ja"]) == [0, 1, 1, 1, 4, 5]
    assert heads.clusters(["a", "fo@@", "x", "@-@", "y", "."]) == [0, 1, 1, 1, 1, 5]
    assert heads.clusters(["a", "-", "b"]) == [0, 1, 2]  # a dash between words
    assert heads.clusters(["name", "￭@￭", "host"]) == [0, 1, 2]  # no hyphen


def test_weight_inside_clusters_and_their_merging() -> None:
    weights = sparse_weights(4, 2, 4)
    within, scores = (
        each(weights, [0, 1, 1, 3]) for each in (head_measures.inside, head_measures.merging)
    )
    assert within[..., 1] == pytest.approx(weights[..., 1, 1] + weights[..., 1, 2])
    assert scores.shape == (2, 2, 3)
    assert (scores[..., 0] == weights[..., 0, 0]).all()  # a word of its own: what it gives itself
    merged = np.maximum(weights[..., 1, 2], weights[..., 2, 1])
    assert scores[..., 1] == pytest.approx(merged)


def test_a_head_is_positional_if_its_largest_weight_is_there_for_nine_tenths() -> None:
    size = 11
    sure, unsure = np.eye(size, k=-1), np.eye(size, k=-1)
    sure[0, 0] = unsure[0, 0] = 1.0
    sure[1] = np.eye(size)[5]  # 9 of the 10 tokens that have one before
    unsure[[1, 2]] = np.eye(size)[[5, 5]]
    sure[2] = 0.4 * np.eye(size)[5] + 0.6 * np.eye(size)[1]
    measures = heads.Measures("encoder", np.array([[1.0, 1.5]]))
    measures.add(0, np.stack([sure, unsure])[None], ["a"] * size)
    found = measures.summary()
    (head,) = heads.positional_heads(found, -1)
    assert tuple(head) == (1, 1, 1.0, pytest.approx(0.86))  # (8 + 0.6 + 0) / 10
    assert heads.positional_heads(found, 1) == []
    # Softmax is dense, even where a weight rounds to zero.
    assert found["density"][0][0] == 1.0
    assert found["density"][0][1] < 1


def write_model(folder: Path, alpha: float | str) -> None:
    torch.manual_seed(0)
    kinds = {f"{kind}_attention_alpha": alpha for kind in KINDS}
    config = small_transformer(**kinds, position_encoding=True, param_init=1.0)
    model = build_model(config, VOCABULARIES).eval()
    for a in alpha_parameters(model):
        torch.nn.init.normal_(a, 0.0, 2.0)
    save(folder, model, config, VOCABULARIES, {})


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, lines in (("src", SOURCES), ("tgt", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    texts = ["--source", str(tmp_path / "src"), "--target", str(tmp_path / "tgt")]
    return [*texts, "--out", str(tmp_path / "out")]


@pytest.mark.parametrize("alpha", ALPHAS.values())
def test_weights_of_a_batch_are_those_of_each_sentence_alone(tmp_path: Path, alpha) -> None:
    write_model(tmp_path / "model", alpha)
    loaded = load(tmp_path / "model")
    together = dict(heads.attend(loaded, PAIRS, 4))
    assert sorted(together) == [0, 1, 2, 3]
    for index, (source, target) in enumerate(PAIRS):
        ((_, alone),) = heads.attend(loaded, [PAIRS[index]])
        sizes = {"encoder": (len(source),) * 2, "decoder": (len(target) + 1,) * 2}
        sizes["context"] = (len(target) + 1, len(source))
        for kind, weights in alone.items():
            assert weights.shape == (2, 2, *sizes[kind])
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
            np.testing.assert_allclose(together[index][kind], weights, atol=1e-6)
    for layers in attentions(loaded.model).values():  # left as they were
        assert [layer._forward_hooks for layer in layers] == [{}, {}]


def test_tables_json_and_pictures_of_two_models(tmp_path: Path, files, capsys) -> None:
    for name, alpha in ALPHAS.items():
        write_model(tmp_path / name / "step_3", alpha)
    rows = [{"kind": "alpha", "step": n, "context": [[1.1, 1.2]] * 2} for n in (1, 2, 3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "learned" / "metrics.jsonl").write_text(text)
    folders, out = [str(tmp_path / name) for name in ALPHAS], tmp_path / "out"
    assert heads.main([*folders, *files, "--language", "en"]) == 0
    printed = capsys.readouterr().out
    found = json.loads((out / "heads.json").read_text(encoding="utf-8"))
    for name in ALPHAS:
        assert found[name]["sentences"] == 4
        asked = found[name]["encoder"]["interrogation"]
        assert (asked["words_in_questions"], asked["words_elsewhere"]) == (1, 1)
        assert f"| {name} |" in printed
    assert found["softmax"]["encoder"]["density"] == [[1.0, 1.0], [1.0, 1.0]]
    assert np.mean(found["learned"]["encoder"]["density"]) < 1
    names = "alphas densities layers divergence positional merging interrogation trajectories"
    for name in names.split():
        assert (out / f"{name}.png").stat().st_size > 1000
        assert (out / f"{name}.pdf").stat().st_size > 1000
    assert "positional head" in (out / "heads.md").read_text(encoding="utf-8")
