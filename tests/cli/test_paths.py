"""Paths that nobody can read or write end every command with one line, and nothing is written."""

import ast
import json
from pathlib import Path

import pytest

import onmt_entmax
from onmt_entmax.cli import (
    bleu,
    combine,
    distill,
    evaluate,
    import_onmt,
    inflect,
    prepare_files,
    prepare_sigmorphon,
    report,
    score,
    suggest,
    train,
    translate,
)
from tests.ended import ended

MODEL = str(Path(__file__).parents[1] / "data" / "model_1.0")
RECORD = {
    "id": 0, "source": "a b", "certificate": "exhaustive", "bound": 0.0, "gap": None, "proven": 1,
    "mass": 1.0, "dropped": 0, "truncated": 0, "excluded": 0.0, "finished": 1,
    "hypotheses": [{"text": "a", "log_prob": 0.0, "prob": 1.0}],
}  # fmt: skip
# Each command with what it needs; every word that begins with @ is a path, tried in its turn.
CALLS = {
    "bleu": (bleu.main, "@text --reference @text --output @out"),
    "combine": (combine.main, "--reports @report --output @out --report @out2"),
    "distill": (distill.main, f"--train @queries --models {MODEL} --out @out"),
    "distill model": (distill.main, "--train queries --models @model --out out"),
    "evaluate": (
        evaluate.main,
        "--source @queries --reference @text --predictions @text --json @out",
    ),
    "import": (import_onmt.main, "@checkpoint @out --yes"),
    "inflect": (inflect.main, "--model @model --input @queries --output @out"),
    "mt": (prepare_files.main, "--languages a b --train @text @text --out @out"),
    "sigmorphon": (prepare_sigmorphon.main, "--data @folder --out @out"),
    "report": (report.main, f"-model {MODEL} -report @report -output @out"),
    "report model": (report.main, "-model @model -report report -output out"),
    "score": (score.main, f"-model {MODEL} -src @text -tgt @text -output @out"),
    "suggest": (suggest.main, "@model --source a --prefix b"),
    "train": (train.main, "-config @config"),
    "translate": (
        translate.main,
        f"-model {MODEL} -src @text -output @out -exactness_report @out2",
    ),
    "translate model": (translate.main, "-model @model -src text -output out"),
}
CASES = [
    (name, place)
    for name, (_, words) in CALLS.items()
    for place, word in enumerate(words.split())
    if word.startswith("@")
]
NAMES = {"loop": "loop", "below": "loop/file", "null": "a\0b", "long": "x" * 300, "empty": ""}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("a b\n")
    (tmp_path / "queries").write_text("lang=x +V a\n")
    (tmp_path / "report").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize(("name", "place"), CASES)
def test_a_path_that_cannot_be_used_is_one_line(
    name: str, place: int, kind: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, text = CALLS[name]
    words = [word.removeprefix("@") for word in text.split()]
    words[place] = NAMES[kind]
    before = sorted(files.rglob("*"))
    assert ended(main, words) == 2
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith(("warning: ", "note: ", "learning "))
    ]
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    assert sorted(files.rglob("*")) == before


def test_a_beginning_of_names_needs_a_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main, text = CALLS["distill"]
    words = ["." if word == "@out" else word.removeprefix("@") for word in text.split()]
    assert ended(main, words) == 2
    assert capsys.readouterr().err.endswith(" .: names no file\n")


def test_only_one_file_opens_others_for_writing() -> None:
    """Every other module writes through `files`, which knows links, devices and full disks."""
    root = Path(onmt_entmax.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if isinstance(node.func, ast.Name):
                name = node.func.id
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            texts += [k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)]
            opens = name in ("open", "fdopen") and any(
                isinstance(t, str) and t[:1] in ("w", "a", "x") for t in texts
            )
            if opens or name in ("write_text", "write_bytes", "NamedTemporaryFile", "mkstemp"):
                function = isinstance(node.func, ast.Name) and name == "write_text"
                if not function:
                    found.add(f"{path.relative_to(root).as_posix()}: {name}")
    assert found == {
        "files.py: open",
        # Into a folder that `write_folder` has made.
        "checkpoint.py: write_text",
        "checkpoint.py: write_bytes",
        "checkpoint.py: open",
    }
