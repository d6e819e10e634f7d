"""The YAML files of `config/`: all parse and build, agree with their heads, and have the papers'
settings."""

import re
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import bleu
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.papers.configurations import build_without_weights, commands_of, write_corpora
from tools.papers import multilabel, nli, tables
from tools.papers.published import published
from tools.papers.sparsemax import read_settings

CONFIG = ROOT / "config"
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(CONFIG.glob("**/*.yaml"))}
TRAININGS = [path for path, text in TEXTS.items() if re.search(r"^data:", text, re.M)]
MATRICES = [path for path, text in TEXTS.items() if re.search(r"^cells:", text, re.M)]
LINE = "lang=english +V d r a w"


def name_of(path: Path) -> str:
    return str(path.relative_to(CONFIG).with_suffix(""))


def test_the_classifiers() -> None:
    for path in CONFIG.glob("multilabel/*.yaml"):
        settings = read_settings(path, multilabel.Settings)
        assert settings.name == path.stem
        assert {loss for loss, _ in published(settings.name)} == {
            "logistic",
            "softmax",
            "sparsemax",
        }
    for path in CONFIG.glob("nli/*.yaml"):
        nli.Classifier(read_settings(path, nli.Settings), 10)


@pytest.mark.parametrize("path", TRAININGS, ids=name_of)
def test_a_training_is_valid_and_its_head_agrees_with_it(path: Path, tmp_path, monkeypatch) -> None:
    values, commands = yaml.safe_load(TEXTS[path]), commands_of(path)
    monkeypatch.chdir(tmp_path)
    write_corpora(values["data"].values(), LINE)
    setup = training_setup(["-config", str(path)])
    build_without_weights(setup.model)
    if path.parent.name == "adaptive":
        assert {*setup.model.attention_alphas.values()} == {"learned"}
    else:
        assert setup.model.global_attention_alpha == setup.model.generator_alpha == 1.5
    if path.stem.endswith("-gpu"):
        assert (setup.training.cuda_graphs, setup.training.matmul_dtype) == ("on", "tf32")
        assert values["gpu_ranks"] == [0]
    assert commands["train"][:2] == ["-config", str(path.relative_to(ROOT))]
    assert values["save_model"] in commands["translate"]
    if "bleu" in commands:
        scored = bleu.parse_arguments(commands["bleu"])
        assert str(scored.reference[0]) == values["data"]["valid"]["path_tgt"]
        assert scored.system[0] == Path(f"{values['save_model']}.pred")
        tokenizer = values.get("valid_bleu_tokenize", "13a")
        if tokenizer != "char":
            assert scored.tokenize == [tokenizer]


@pytest.mark.parametrize("path", MATRICES, ids=name_of)
def test_every_cell_of_a_matrix_is_valid_and_what_its_name_says(
    path: Path, tmp_path: Path, monkeypatch
) -> None:
    matrices, commands = tables.read_matrices(path), commands_of(path)
    monkeypatch.chdir(tmp_path)
    assert str(path.relative_to(ROOT)) in commands["tables"]
    for matrix in matrices:
        for cell in matrix.cells:
            options = matrix.training(cell, 1).options()
            write_corpora(options["data"].values(), LINE)
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(options))
            model = training_setup(["-config", "config.yaml"]).model
            alphas = {"output": model.generator_alpha, "attention": model.global_attention_alpha}
            for layer, alpha in re.findall(r"(output|attention)-([\d.]+)", cell.name):
                assert float(alpha) == alphas[layer]
            network = build_without_weights(model)
            if path.parent.name == "adaptive":
                alpha = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}[
                    cell.name.split("-")[0]
                ]
                assert {*model.attention_alphas.values()} == {alpha}
                learned = sum(p.numel() for n, p in network.named_parameters() if n.endswith(".a"))
                assert learned == 3 * model.heads * model.enc_layers * (alpha == "learned")
        assert matrix.source.is_file()
        assert matrix.reference.is_file()


def test_commands_in_documents_exist() -> None:
    """Scripts and configurations that documents and heads name are there."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*"), *TEXTS, *ROOT.glob("tools/papers/*.py")]
    for path in documents:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for name in re.findall(r"python -m tools\.papers\.(\w+)", text):
            if name != "NAME":
                assert (ROOT / "tools" / "papers" / f"{name}.py").is_file(), (path, name)
        for name in re.findall(r"config/[\w/.-]+\.yaml", text):
            assert (ROOT / name).is_file() or "MATRIX" in name, (path, name)
        for name in re.findall(r"onmt-entmax ((?:prepare )?[a-z][\w-]+)", text):
            assert name not in ("experiment", "figures", "heads", "sparsity", "multilabel", "nli")
