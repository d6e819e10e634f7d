"""The YAML files of `config/`: all parse and build, agree with their heads, and have the papers'
settings."""

import re
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import bleu, prepare_files
from onmt_entmax.data.parallel import Subwords
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.optimiser import learning_rate_schedule
from tests.commands import ROOT
from tests.ended import ended
from tests.papers.configurations import KEYS, build_without_weights, commands_of, write_corpora
from tools.papers import corpora, multilabel, nli, tables
from tools.papers.published import published
from tools.papers.sparsemax import read_settings

CONFIG = ROOT / "config"
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(CONFIG.glob("**/*.yaml"))}
TRAININGS = [path for path, text in TEXTS.items() if re.search(r"^data:", text, re.M)]
MATRICES = [path for path, text in TEXTS.items() if re.search(r"^cells:", text, re.M)]
LINE = "lang=english +V d r a w"


def name_of(path: Path) -> str:
    return str(path.relative_to(CONFIG).with_suffix(""))


def check_prepared(words: list[str], options: dict) -> None:
    """Check that the options name the files and subwords that `tools.papers.corpora` makes."""
    name, *rest = words
    place = rest.index("--out")
    out = Path(rest[place + 1])
    more = [word for word in rest[:place] + rest[place + 2 :] if word != "--from"]
    more = [word for word in more if not word.startswith(("de-en", "wmt1"))]  # a local copy
    arguments = [*corpora.preparation(name, Path(), out, ["train", "val"]), *more]
    given = prepare_files.parse_arguments(arguments)
    joint, languages = given.subwords == "joint", given.languages
    subwords = Subwords(given.subword_type, given.symbols, joint, given.tokens)
    models = prepare_files.model_paths(out, subwords, languages)
    sides = dict(zip(languages, models, strict=True))
    for order in (languages, languages[::-1]):
        data = [
            {key: str(out / f"{part}.{each}") for key, each in zip(KEYS, order, strict=True)}
            for part in ("train", "val")
        ]
        lines = prepare_files.subword_options(subwords, [sides[each] for each in order])
        expected = {"data": data, **yaml.safe_load("\n".join(lines))}
        if {key: options[key] for key in expected} | {
            "data": [*options["data"].values()]
        } == expected:
            return
    raise AssertionError(f"{words}: makes other files or subwords")


def test_no_file_is_left_out() -> None:
    cells = {
        (path.parent / yaml.safe_load(TEXTS[path])["cells"]).resolve()
        for path in MATRICES
        if isinstance(yaml.safe_load(TEXTS[path])["cells"], str)
    }
    classifiers = {*CONFIG.glob("multilabel/*.yaml"), *CONFIG.glob("nli/*.yaml")}
    assert {*TEXTS} == {*TRAININGS, *MATRICES, *cells, *classifiers}


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
        if values.get("valid_bleu_tokenize", "13a") != "char":
            assert scored.tokenize == [values.get("valid_bleu_tokenize", "13a")]
        check_prepared(commands["corpora"], values)


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
                kinds = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}
                assert {*model.attention_alphas.values()} == {kinds[cell.name]}
                learned = sum(p.numel() for n, p in network.named_parameters() if n.endswith(".a"))
                heads = 3 * model.heads * model.enc_layers
                assert learned == heads * (cell.name == "learned")
                if "corpora" in commands:
                    check_prepared(commands["corpora"], options)
        assert matrix.source.is_file()
        assert matrix.reference.is_file()


PAPER = {
    "morphology": {"layers": 2, "rnn_size": 300, "dropout": [0.3], "batch_size": 64},
    "mt": {"layers": 2, "rnn_size": 500, "dropout": [0.3], "batch_size": 64},
}
STEPS = {"de-en": (100_000, 5_000), "ja-en": (100_000, 10_000), "ro-en": (120_000, 10_000)}


def test_the_settings_of_the_sparse_models() -> None:
    both = {"optim": "adam", "learning_rate": 0.001, "decay_method": "plateau"}
    both |= {"learning_rate_decay": 0.5, "encoder_type": "brnn", "rnn_type": "LSTM"}
    expected = {
        f"morphology/{name}": {"valid_epochs": n} for name, n in (("medium", 10), ("high", 1))
    }
    for pair, (train, valid) in STEPS.items():
        for name in (pair, "-".join(reversed(pair.split("-")))):
            expected[f"mt/{name}"] = {"train_steps": train, "valid_steps": valid}
            prepared = " ".join(commands_of(CONFIG / f"mt/{name}.yaml")["corpora"])
            assert ("--subwords separate --symbols 25000" in prepared) == (pair == "ro-en")
    for name, own in expected.items():
        values = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
        paper = {**both, **PAPER[name.split("/")[0]], **own}
        assert {key: values[key] for key in paper} == paper
    for name in ("pilot", "medium", "high"):
        (matrix,) = tables.read_matrices(CONFIG / f"morphology/matrix-{name}.yaml")
        assert (len(matrix.cells), len(matrix.trainings())) == (9, 27)
    alphas = {
        (cell.training["global_attention_alpha"], cell.training["generator_alpha"])
        for cell in tables.read_matrices(CONFIG / "mt/sweep/multi30k.yaml")[0].cells
    }
    steps = (1, 1.25, 1.5, 1.75, 2, 2.25)
    assert alphas == {(a, 1.5) for a in steps} | {(1.5, a) for a in steps}


def test_the_settings_of_the_transformers(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for pair in tables.TRANSFORMERS:
        (matrix,) = tables.read_matrices(CONFIG / f"adaptive/matrix-{pair}.yaml")
        options = matrix.cells[-1].training
        often = 10_000 if pair in ("ro-en", "en-de") else 5_000
        paper = {"layers": 6, "rnn_size": 512, "heads": 8, "transformer_ff": 2048}
        paper |= {"batch_type": "tokens", "batch_size": 8192, "warmup_steps": 20_000}
        paper |= {"valid_steps": often, "selection": "token_accuracy"}
        assert {key: options[key] for key in paper} == paper
        write_corpora(options["data"].values(), LINE)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(matrix.trainings()[0].options()))
        config = training_setup(["-config", "config.yaml"]).training.optimizer
        rate = learning_rate_schedule(config, None)
        rates = [config.learning_rate * rate(step) for step in (5_000, 10_000, 20_000, 80_000)]
        assert rates == pytest.approx([0.00015625, 0.0003125, 0.000625, 0.0003125])


SMALL = {"layers": 1, "rnn_size": 8, "word_vec_size": 8, "train_steps": 10, "valid_steps": 10}
SMALL |= {"save_checkpoint_steps": 10, "warmup_steps": 2, "attention_warmup_steps": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "cell", "more"),
    [
        ("adaptive/matrix-multi30k", "mt/multi30k", "learned", {"heads": 2, "transformer_ff": 8}),
        ("mt/sweep/multi30k", "mt/multi30k", "output-1.25", {}),
        ("morphology/matrix-pilot", "pilot/data", "output-2-attention-1.5", {}),
    ],
)
def test_a_matrix_trains_a_small_network(name, folder, cell, more, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())
    content |= {"seeds": [1], "base": str((CONFIG / f"{name}.yaml").parent / content["base"])}
    cells = content["cells"]
    if isinstance(cells, str):
        cells = yaml.safe_load(((CONFIG / f"{name}.yaml").parent / cells).read_text())
    content["cells"] = {cell: cells[cell]}
    small = {**SMALL, **more}
    base = yaml.safe_load(Path(content["base"]).read_text())
    small = {k: v for k, v in small.items() if k in base or "steps" not in k or k[:5] == "train"}
    content["options"] = {**content.get("options", {}), **small}
    words = [f"{LINE} {'ab' * (n % 30)} ." for n in range(60)]
    for side in ("de", "en"):
        (tmp_path / f"x.{side}").write_text("".join(f"{line}\n" for line in words))
    if folder == "mt/multi30k":
        files = ["--languages", "de", "en", "--train", "x.de", "x.en", "--val_size", "5"]
        out = ["--out", f"run/{folder}", "--symbols", "20", "--tokens"]
        assert ended(prepare_files.main, [*files, *out]) == 0
    else:
        for corpus in base["data"].values():
            for key in KEYS:
                Path(corpus[key]).parent.mkdir(parents=True, exist_ok=True)
                Path(corpus[key]).write_text("".join(f"{LINE}\n" for _ in words))
    Path("matrix.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    assert ended(tables.main, ["run", "matrix.yaml"]) == 0
    (matrix,) = tables.read_matrices(Path("matrix.yaml"))
    figures = tables.figures_of(matrix.trainings()[0])
    assert figures is not None
    assert figures["step"] == 10


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
