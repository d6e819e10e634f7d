"""`tools.papers.tables`: a small matrix from start to table, and the ways it can go wrong."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.errors import UserError
from tests.ended import ended, refused
from tests.papers.matrices import write_matrix
from tools.papers import evaluation, results, tables
from tools.papers.matrix import Matrix, Work, read_matrices
from tools.papers.running import Runner


def read(path: Path) -> Matrix:
    (matrix,) = read_matrices(path)
    return matrix


def test_every_run_has_its_folder(finished: Path) -> None:
    for name in ("seed-1", "seed-2", "ensemble"):
        folder = finished.parent / "runs" / "one" / name
        names = {path.name for path in folder.iterdir()}
        assert {"log.txt", "dev.pred", "dev.report.jsonl", "figures.json"} <= names
        figures = json.loads((folder / "figures.json").read_text())
        assert next(iter(figures)) == "accuracy"
        assert set(figures["languages"]) == {"a", "b"}
        assert figures["output_alpha"] == 2
        assert len((folder / "dev.pred").read_text().splitlines()) == 40
    config = yaml.safe_load((folder.parent / "seed-2" / "config.yaml").read_text())
    assert (config["seed"], config["learning_rate"]) == (2, 0.01)
    assert config["save_model"] == str(folder.parent / "seed-2" / "model")
    models = yaml.safe_load((folder / "translate.yaml").read_text())["model"]
    assert [Path(model).parts[-3] for model in models] == ["seed-1", "seed-2"]


def test_what_is_done_is_skipped_and_another_decoding_needs_no_training(
    copied: Path, monkeypatch, capfd
) -> None:
    commands = []
    monkeypatch.setattr(Runner, "execute", lambda self, words, *_: commands.append(words))
    assert ended(tables.main, ["run", str(copied), "--jobs", "9"]) == 0
    assert commands == []
    assert capfd.readouterr().err.count("done before") == 3
    path = copied.with_name("wider.yaml")
    path.write_text(copied.read_text().replace("beam_size: 3", "beam_size: 4"))
    first, second = read(path).trainings()
    assert evaluation.figures_of(first) is None
    assert ended(tables.main, ["run", str(path), "--seeds", "2"]) == 0
    assert [words[0] for words in commands] == ["train", "translate"]
    assert commands[0][-2:] == ["-train_from", str(second.run)]
    assert yaml.safe_load((second.folder / "translate.yaml").read_text())["beam_size"] == 4
    assert evaluation.figures_of(second) is not None


@pytest.mark.parametrize("words", ["run", "table"])
def test_a_changed_configuration_is_refused(finished: Path, words: str) -> None:
    path = finished.with_name("changed.yaml")
    path.write_text(finished.read_text().replace("0.01", "0.02"))
    line = refused(tables.main, [words, path])
    assert "seed-1: was trained with learning_rate 0.01, the matrix now says 0.02" in line


def test_bleu_counts_what_validation_counts(tmp_path: Path) -> None:
    changes = {"valid_bleu_tokenize": "char"}
    matrix = read(write_matrix(tmp_path, evaluate="bleu", options=changes, paper=None))
    training = matrix.trainings()[0]
    training.folder.mkdir(parents=True)
    references = matrix.reference.read_text().splitlines()
    predictions = [line[:-2] or line for line in references]
    training.output.write_text("\n".join(predictions) + "\n")
    figures = evaluation.bleu(training)
    expected = BLEU(tokenize="char").corpus_score(predictions, [references]).score
    assert figures["bleu"] == pytest.approx(expected, abs=1e-4)
    assert "tok:char" in figures["signature"]
    assert results.main_figure(matrix) == ("bleu", "BLEU (char)")
    training.output.write_text("a\n")
    for evaluate in evaluation.EVALUATE.values():
        with pytest.raises(UserError, match=r"dev.pred: 1 line, but .* has 40; they"):
            evaluate(training)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": [1, 1]}, "seeds: expected different whole numbers"),
        ({"evaluat": "bleu"}, "evaluat: no such key; did you mean 'evaluate'?"),
        ({"cells": {"one": {"rnn_siz": 2}}}, "one: rnn_siz: no such option; did you mean"),
        ({"translate": {"beam_size": 0}}, "one: beam_size"),
    ],
)
def test_a_wrong_matrix_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict, message: str
) -> None:
    line = refused(tables.main, ["run", write_matrix(tmp_path, **changes)])
    assert message in line
    assert not (tmp_path / "runs").exists()


FIGURES = {
    **{f"soft seed {n}": (69.0 + n, 1.0) for n in (1, 2, 3)},
    "sparse seed 1": (74.0, 1.5),
    "sparse seed 2": (73.0, 1.5),
    "soft ensemble": (75.5, 1.0),
}


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch) -> Matrix:
    """Figures without runs, as the table reads them."""

    def figures_of(work: Work) -> dict | None:
        if work.name not in FIGURES:
            return None
        value, alpha = FIGURES[work.name]
        rest = {"exhaustive": 80.0 + (work.seed or 0), "output_support": 1.25}
        return {"accuracy": value, "output_alpha": alpha, "attention_alpha": 1.5, **rest}

    monkeypatch.setattr(results, "figures_of", figures_of)
    cells = {"soft": {"generator_function": "softmax"}, "sparse": None, "none": None}
    return read(write_matrix(tmp_path, cells=cells, seeds=[1, 2, 3]))


def test_the_table_stands_beside_the_papers(matrix: Matrix, capsys) -> None:
    assert tables.main(["table", str(matrix.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(" | ")[3:6] == ["paper", "paper, ens.", "accuracy"]
    soft = "| soft | 1 | 1.5 | 83.20 | 85.63 | 71.00 ± 1.00 | 3 | 75.50 | 82.00 ± 1.00 |"
    assert soft in lines[2]
    assert "| sparse | 1.5 | 1.5 | 84.93 | 86.55 | 73.50 ± 0.71 | 2 | - |" in lines[3]
    assert lines[4].startswith("| none | - | - | - | - | - | 0 | - | - |")
    # sqrt(1 / 3 + 0.5 / 2) = 0.76; 74 and 73 are both above 72
    assert "| sparse | +2.50 | 0.76 | yes |" in lines
    assert "79 % of the words" in lines[-1]
    assert tables.main(["table", str(matrix.path), "--latex"]) == 0
    text = capsys.readouterr().out.partition("\n\n")[0]
    assert r"soft & 1 & 1.5 & 83.20 & 85.63 & 71.00 $\pm$ 1.00 & 3 & 75.50" in text
    columns = len(text.split("{")[2].split("}")[0])
    rows = [line for line in text.splitlines()[1:-1] if "&" in line]
    assert {line.count("&") for line in rows} == {columns - 1}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two pairs with two cells, that was run, and their test sets."""
    folder = tmp_path_factory.mktemp("pairs")
    content = yaml.safe_load(write_matrix(folder, evaluate="bleu", paper=None).read_text())
    own = {key: content.pop(key) for key in ("base", "source", "reference")}
    content |= {"pairs": {"de-en": own, "en-de": own}, "seeds": [1], "paper": "table2"}
    functions = ("global_attention_function", "generator_function")
    content["cells"] = {name: dict.fromkeys(functions, name) for name in ("softmax", "entmax15")}
    path = folder / "pairs.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    for side in ("src", "tgt"):
        shutil.copy(folder / f"valid.{side}", folder / f"test.{side}")
    assert "no pair 'de'" in refused(tables.main, ["run", path, "--pairs", "de"])
    assert "not done: de-en softmax seed 1" in refused(tables.main, ["test", path])
    assert ended(tables.main, ["run", str(path), "--jobs", "2"]) == 0
    return path


def test_a_table_of_pairs(pairs: Path, capsys) -> None:
    assert ended(tables.main, ["table", str(pairs)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("| cell | de-en, BLEU (13a), runs 1 | en-de, BLEU (13a), runs 1 |")
    assert "| softmax, paper, tokenised | 25.70 ± 0.15 | 21.86 ± 0.09 |" in text
    assert "| entmax15, paper | 5.55 | 16.13 | - | - |" in text
    assert "| against softmax | seed | entmax15 |" in text
    assert text.count("(p ") == 2
