"""The commands `nli` and `prepare fetch-snli`."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from onmt_entmax.cli.fetch_snli import FILES
from onmt_entmax.cli.fetch_snli import main as fetch
from onmt_entmax.cli.nli import main
from tests.ended import ended, refused

ROWS = [
    "sentence_A\tsentence_B\tentailment_judgment",
    "a dog runs\tit runs\tENTAILMENT",
    "a cat sleeps today\tit runs\tCONTRADICTION",
    "a bird sings\tit runs\tNEUTRAL",
]
CONFIG = """
train: pairs.tsv
dev: pairs.tsv
lowercase: true
min_frequency: 1
attention: sparsemax
output: softmax
word_vec_size: 4
rnn_size: 4
dropout: 0
learning_rate: 0.01
l2: 0
batch_size: 2
epochs: 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("\n".join(ROWS) + "\n")
    Path("nli.yaml").write_text(CONFIG)
    return tmp_path


def train(name: str, *more: str) -> None:
    assert ended(main, ["train", "--config", "nli.yaml", "--out", name, *more]) == 0


def test_from_training_to_pictures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    train("one")
    train("two", "--seed", "2")
    train("three", "--attention", "1.5")
    train("four", "--attention", "none")
    printed = capsys.readouterr()
    assert "one: best epoch: accuracy " in printed.out
    assert "epoch 2/2" in printed.err

    assert ended(main, ["evaluate", "one", "two", "three", "four", "--data", "pairs.tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 pairs, 3.33 words a premise, 33.33 % entailment"
    assert lines[1].split() == "run attention seed accuracy attended".split()
    assert lines[3].split()[:3] == ["two", "sparsemax", "2"]
    assert lines[5].split()[-1] == "-"
    assert lines[8].split()[:2] == ["sparsemax", "2"]
    assert " ± " in lines[8]

    out = ["--output", "out.jsonl"]
    assert ended(main, ["evaluate", "one", "--data", "pairs.tsv", *out]) == 0
    capsys.readouterr()
    first, *others = map(json.loads, Path("out.jsonl").read_text().splitlines())
    assert len(others) == 2
    assert first["premise"] == ["a", "dog", "runs"]
    assert sum(first["attention"]) == pytest.approx(1)
    assert sum(first["probabilities"].values()) == pytest.approx(1)
    assert first["predicted"] == max(first["probabilities"], key=first["probabilities"].get)

    drawing = ["--data", "pairs.tsv", "--out", "pictures"]
    assert ended(main, ["figures", "one", "three", *drawing, "--lines", "2", "4"]) == 0
    assert sorted(path.name for path in Path("pictures").iterdir()) == [
        f"line-{n}.{ending}" for n in (2, 4) for ending in ("pdf", "png")
    ]
    capsys.readouterr()
    for runs, line, message in [
        (["one"], "5", "pairs.tsv: line 5 has no pair with a label"),
        (["one", "four"], "2", "four: has no attention to draw"),
        (["one", "one"], "2", "the models need different names"),
    ]:
        assert message in refused(main, ["figures", *runs, *drawing, "--lines", line])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate a b --data pairs.tsv --output o", "--output takes the predictions of one run"),
        ("evaluate a --data pairs.tsv --output pairs.tsv", "is read, and would be overwritten"),
        ("evaluate a --data pairs.tsv", "a: no model.json"),
        ("train --config nli.yaml --out r --attention soft", "--attention: must be none or"),
        ("train --config nli.yaml --out r --attention 0.5", "--attention: must be none or"),
        ("train --config nli.yaml --out r --seed -1", "--seed: must be a whole number"),
        ("train --config pairs.tsv --out r", "pairs.tsv: "),
    ],
)
def test_mistakes(folder: Path, arguments: str, message: str) -> None:
    before = sorted(folder.iterdir())
    line = refused(main, arguments.split())
    assert message in line
    assert sorted(folder.iterdir()) == before


def test_an_interrupt_is_one_line_and_leaves_the_best_epoch(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from onmt_entmax.classify import nli

    epochs = []
    one_epoch = nli._one_epoch

    def interrupted(*arguments: object) -> tuple[float, float]:
        epochs.append(1)
        if len(epochs) == 2:
            raise KeyboardInterrupt
        return one_epoch(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(nli, "_one_epoch", interrupted)
    assert ended(main, ["train", "--config", "nli.yaml", "--out", "run"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "nli.py: interrupted"
    assert nli.load(Path("run")).settings.epochs == 2


def archive(path: Path, names: list[str]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "{}\n")


def test_snli_from_a_local_archive(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "snli.zip"
    archive(path, [f"snli_1.0/{name}" for name in FILES] + ["__MACOSX/x"])
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert ended(fetch, ["--out", "snli", "--from", "snli.zip", "--sha256", sha256]) == 0
    assert f"sha256 {sha256}" in capsys.readouterr().out
    assert sorted(p.name for p in (folder / "snli").iterdir()) == ["SHA256SUMS", *sorted(FILES)]
    assert (folder / "snli" / FILES[0]).read_text() == "{}\n"
    assert "is there already" in refused(fetch, ["--out", "snli", "--from", "snli.zip"])


def test_another_archive_than_snli(folder: Path) -> None:
    archive(folder / "part.zip", [f"snli_1.0/{name}" for name in FILES[:2]])
    with zipfile.ZipFile("damaged.zip", "w", zipfile.ZIP_BZIP2) as file:
        for name in FILES:
            file.writestr(f"snli_1.0/{name}", "{}\n")
    content = Path("damaged.zip").read_bytes()
    Path("damaged.zip").write_bytes(content.replace(b"BZh9", b"BZh0"))
    for arguments, message in [
        (["--from", "part.zip"], "part.zip: is not SNLI 1.0"),
        (["--from", "pairs.tsv"], "pairs.tsv: not a zip archive"),
        (["--from", "damaged.zip"], "damaged.zip: not a zip archive, or damaged"),
        (["--from", "part.zip", "--sha256", "0" * 64], "part.zip: has another checksum"),
        (["--from", "nothing"], "nothing: cannot be read"),
    ]:
        line = refused(fetch, ["--out", "snli", *arguments])
        assert message in line
        assert not (folder / "snli").exists()
