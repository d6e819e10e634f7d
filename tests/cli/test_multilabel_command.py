"""`onmt-entmax multilabel` and `prepare fetch-multilabel`, as a user runs them."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from onmt_entmax.classify.multilabel import Grid
from onmt_entmax.classify.multilabel_data import read_examples
from onmt_entmax.classify.settings import read_settings
from onmt_entmax.cli import fetch_multilabel, multilabel
from onmt_entmax.errors import UserError
from tests.classify.test_multilabel import some_examples

FILES = sorted((Path(__file__).resolve().parents[2] / "config" / "multilabel").glob("*.yaml"))

XML = "<labels>{}</labels>"


def write_arff(path: Path, seed: int) -> None:
    """Write 24 rows, of which one has no label."""
    examples = some_examples(24, seed=seed)
    lines = ["@relation r", *(f"@attribute x{n} numeric" for n in range(4))]
    lines += [f"@attribute {name} {{0,1}}" for name in examples.names] + ["@data"]
    for n, (row, labels) in enumerate(zip(examples.features, examples.labels, strict=True)):
        flags = [0, 0, 0] if n == 5 else labels.int().tolist()
        lines.append(",".join(map(str, [*row.tolist(), *flags])))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with data and a small configuration."""
    write_arff(tmp_path / "train.arff", 0)
    write_arff(tmp_path / "test.arff", 1)
    names = "".join(f'<label name="label{n}"/>' for n in range(3))
    (tmp_path / "data.xml").write_text(XML.format(names))
    configure(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(folder: Path, **keys: object) -> None:
    settings = {
        "name": "scene",
        "train": "train.arff",
        "labels": "data.xml",
        "out": "out",
        "losses": ["softmax", "sparsemax", 1.25],
        "seeds": 2,
        "folds": 2,
        "l2": [0.1, 1],
        "softmax_thresholds": [0.9],
        "scales": [1, 2],
        **keys,
    }
    lines = (f"{key}: {json.dumps(value)}\n" for key, value in settings.items() if value is not ...)
    (folder / "c.yaml").write_text("".join(lines))


def test_the_table_and_its_files(folder, capsys, monkeypatch):
    assert multilabel.main(["c.yaml"]) == 0
    table, messages = capsys.readouterr()
    assert table.startswith("scene, nested cross-validation, 23 rows with labels, F1 in %, 2 seeds")
    assert "| 73.45 / 74.57 |" in next(x for x in table.splitlines() if "| sparsemax |" in x)
    assert "rows without a label teach nothing: 1 of 24" in messages
    assert (folder / "out" / "table.md").read_text() + "\n" == table
    result = json.loads((folder / "out" / "sparsemax.json").read_text())
    for chooser in ("micro_f1", "macro_f1"):
        assert [len(choices) for choices in result["choices"][chooser]] == [2, 2]
    for measure in ("micro_f1", "macro_f1", "label_mean_f1"):
        assert f"| {sum(result[measure]) / 2:.2f} ± " in table
    lines = (folder / "out" / "sparsemax.predictions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["row"] for row in rows] == list(range(1, 25))
    assert rows[5]["labels"] == []
    for row in rows:
        assert row["predicted"] == list(row["probabilities"])  # the support
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-5)

    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(multilabel, "measure", never)
        assert multilabel.run(Path("c.yaml"), None) + "\n" == table
        configure(folder, losses=["sparsemax"], scales=[1])
        with pytest.raises(AssertionError):
            multilabel.run(Path("c.yaml"), None)
    (folder / "out" / "sparsemax.json").write_text("{")
    with pytest.raises(UserError, match=r"sparsemax\.json: damaged"):
        multilabel.run(Path("c.yaml"), None)


def test_a_test_file(folder):
    configure(folder, losses=["sparsemax"], seeds=1)
    table = multilabel.run(Path("c.yaml"), Path("test.arff"))
    assert table.startswith("scene, test, 23 rows")
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "sparsemax.test.json",
        "sparsemax.test.predictions.jsonl",
        "table.test.md",
    ]


def test_close_alphas_have_files_of_their_own(folder):
    configure(folder, losses=[1.5, 1.50000001], seeds=1)
    multilabel.run(Path("c.yaml"), None)
    assert sorted(path.name for path in (folder / "out").glob("*-entmax.json")) == [
        "1.5-entmax.json",
        "1.50000001-entmax.json",
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"losses": ["sparsmax"]}, "losses must be a list of different values, each of which"),
        ({"losses": []}, "losses must be a list"),
        ({"losses": [1.5, 1.5]}, "losses must be a list of different"),
        ({"l2": 0.1}, "l2 must be a list"),
        ({"folds": 1}, "folds must be"),
        ({"softmax_thresholds": [-1]}, "softmax_thresholds must be a list"),
        ({"sedes": 3}, "unknown key 'sedes'; did you mean 'seeds'?"),
        ({"train": ...}, "train is missing"),
        ({"labels": ...}, "set `labels`"),
        ({"train": "none.arff"}, "none.arff: cannot be read"),
        ({"out": "train.arff"}, "c.yaml: out: train.arff is not a folder"),
        ({"train": "pipe.svm"}, "pipe.svm: is not a regular file"),  # reading it would never end
        ({"folds": 24}, "too few rows with labels for 24 folds"),
    ],
)
def test_a_wrong_configuration_is_one_line(folder, keys, message):
    os.mkfifo("pipe.svm")
    configure(folder, **keys)
    with pytest.raises(UserError) as caught:
        multilabel.run(Path("c.yaml"), None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (folder / "out").exists()


def test_without_scikit_learn(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "onmt_entmax\[classify\]"'):
        multilabel.run(Path("c.yaml"), None)


def test_fetching_from_a_folder(tmp_path, monkeypatch, capsys):
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    rows = "".join(f"{n},0\n" for n in range(502))
    contents = {
        "birds.xml": "a",
        "birds-train.arff": "b",
        "cal500.xml": "c",
        "cal500.arff": f"@relation r\n@data\n{rows}",
    }
    for name, text in contents.items():
        (source / name).write_text(text)
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in contents.items()}
    monkeypatch.setattr(fetch_multilabel, "CHECKSUMS", sums)
    command = ["birds", "cal500", "--out", str(out), "--from", str(source)]
    assert fetch_multilabel.main(command) == 0
    capsys.readouterr()
    assert (out / "birds-train.arff").read_text() == "b"
    train = (out / "cal500-train.arff").read_text().splitlines()
    assert train[:2] == ["@relation r", "@data"]
    assert len(set(train[2:])) == 400
    (out / "birds.xml").write_text("damaged")
    fetch_multilabel.main(command)
    assert "birds: birds.xml\n" in capsys.readouterr().out
    assert fetch_multilabel.main([*command, "--test"][1:]) == 0
    rest = (out / "cal500-test.arff").read_text().splitlines()[2:]
    assert sorted([*train[2:], *rest]) == sorted(rows.split())
    (out / "birds-train.arff").unlink()
    (source / "birds-train.arff").write_text("another")
    with pytest.raises(UserError, match=r"birds-train\.arff: has another checksum"):
        fetch_multilabel.main(command)
    assert not (out / "birds-train.arff").exists()


def test_reuters_of_a_fake_scikit_learn_is_fitted_without_standardising(folder, monkeypatch):
    """The real data was never at hand: this has its form, sparse rows and labels."""
    examples = some_examples(24)
    table = examples.features * (examples.features > 0)
    data = Bunch(
        data=csr_matrix(table),
        target=csr_matrix(examples.labels.numpy().astype("uint8")),
        target_names=["C11", "C&12", "GCAT"],
    )
    asked = []
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", lambda subset: asked.append(subset) or data)
    assert fetch_multilabel.main(["reuters", "--out", "."]) == 0
    assert asked == ["train"]
    files = {"train": "reuters-train.svm", "labels": "reuters.xml", "standardise": False}
    read = read_examples(folder / files["train"], folder / files["labels"])
    assert read.names == ("C11", "C&12", "GCAT")
    assert torch.equal(read.labels, examples.labels)
    assert abs(read.features - csr_matrix(table)).max() < 1e-6
    configure(folder, losses=["sparsemax"], **files)
    assert "| sparsemax |" in multilabel.run(Path("c.yaml"), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_configurations_of_the_repository(path):
    settings = read_settings(path, multilabel.Settings, multilabel.RULES)
    names = [loss.name for loss in settings.chosen_losses()]
    assert names == ["logistic", "softmax", "sparsemax", "entmax15"]
    assert settings.grid() == Grid(standardise=settings.standardise)
    assert settings.standardise == (path.stem != "reuters")
    assert f"fetch-multilabel {settings.name} --out {Path(settings.train).parent}\n" in (
        path.read_text(encoding="utf-8")
    )
