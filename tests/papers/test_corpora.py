"""`tools.papers.corpora`: local copies, downloads from this machine, and other files."""

import html
import json
import zipfile
from pathlib import Path

import pytest

from tests.ended import ended, refused
from tools.papers import corpora

SIZES = {"train": 120, "val": 20, "test": 20}


def lines_of(language: str, part: str) -> list[str]:
    letters = "犬走吠通" if language == "ja" else "abcd"
    return [f"{letters[n % 4] * (n % 3 + 1)} x{n} & {part} ." for n in range(SIZES[part])]


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch) -> None:
    """The corpora with the sizes of the files made here."""
    monkeypatch.chdir(tmp_path)
    for name, corpus in corpora.PARALLEL.items():
        counts = {part: SIZES[part] for part in corpus["counts"]}
        prepare = corpus.get("prepare", "").split("--symbols")[0] + " --symbols 60"
        made = {**corpus, "counts": counts, "sha256": {}, "prepare": prepare}
        monkeypatch.setitem(corpora.PARALLEL, name, made)


def contents(name: str, files: dict[str, list[str]]) -> dict[str, bytes]:
    """The files of a corpus as its makers publish them."""
    found = {}
    for part, patterns in files.items():
        for language in corpora.PARALLEL[name]["languages"]:
            lines = lines_of(language, part)
            size = -(-len(lines) // len(patterns))
            for n, pattern in enumerate(patterns):
                some, file = lines[n * size : (n + 1) * size], pattern.format(language)
                if file.endswith((".sgm", ".xml")):
                    some = ["<doc>", *(f"<seg id='1'> {html.escape(s)} </seg>" for s in some)]
                elif file.startswith("train.tags."):
                    some = ["<url>http://x</url>", *some]
                found[file.replace("*", "x")] = "".join(f"{s}\n" for s in some).encode()
    return found


def check_output(name: str) -> None:
    parts = json.loads(Path("out/prepare.json").read_text())["pairs"]
    for part in corpora.PARALLEL[name]["counts"]:
        assert parts[part] == SIZES[part]
        for language in corpora.PARALLEL[name]["languages"]:
            folder = Path("out/test" if part == "test" else "out")
            text = (folder / f"{part}.{language}").read_text(encoding="utf-8")
            assert text.splitlines() == lines_of(language, part)


@pytest.mark.parametrize("name", list(corpora.PARALLEL))
def test_a_local_copy(name: str) -> None:
    Path("copy").mkdir()
    for file, data in contents(name, corpora.PARALLEL[name]["files"]).items():
        Path("copy", file).write_bytes(data)
    assert ended(corpora.main, [name, "--from", "copy", "--out", "out"]) == 0
    check_output(name)
    for more, message in (
        (["--from", "copy", "--out", "copy"], "is the folder that is read"),
        (["snli", "--out", "out"], "a folder of its own"),
        (["--test", "--out", "out"], "--test is not of"),
    ):
        assert message in refused(corpora.main, [name, *more])
    first = next(p for p in sorted(Path("copy").iterdir()) if not {"test", "tst"} & {p.name[:4]})
    first.write_bytes(first.read_bytes()[:-20])
    words = [name, "--from", "copy", "--out", "out2"]
    line = refused(corpora.main, words, progress=True)
    assert "the copy is cut or another one" in line
    first.unlink()
    assert "copy: no file" in refused(corpora.main, words, progress=True)


def test_the_split_of_tatoeba_depends_on_no_order() -> None:
    lines = [f"e{n}\tg{n}\tCC" for n in range(3000)] + ["e7\tg7", "e7\tother"]
    parts = corpora.split_tatoeba(lines)
    assert parts == corpora.split_tatoeba(lines[::-1])
    assert len(parts["val"][0]) == corpora.TATOEBA_VAL
    assert not {*parts["train"][1]} & {*parts["val"][1]}
    assert sum(len(part[0]) for part in parts.values()) >= 3000


def test_sigmorphon(conll2018_copy: Path, capsys) -> None:
    words = ["sigmorphon", "--out", "rows", "--from", str(conll2018_copy), "--settings", "low"]
    for fetched in (2, 0):
        assert ended(corpora.main, [*words, "--languages", "cornish"]) == 0
        assert f"2 files, 150 rows; {fetched} fetched" in capsys.readouterr().out
    line = refused(corpora.main, [*words, "--languages", "cornsh"])
    assert "no language 'cornsh'; did you mean 'cornish'?" in line
    Path("rows/cornish-dev").write_text("a\tb\tV\n")  # damaged: fetched again
    (conll2018_copy / "task1/surprise/cornish-dev").write_text("a\tb\tV\n")
    line = refused(corpora.main, [*words, "--languages", "cornish"], progress=True)
    assert "cornish-dev: has another checksum" in line


@pytest.fixture
def conll2018_copy(tmp_path: Path, monkeypatch) -> Path:
    """Two files as in a clone of the repository, with their checksums."""
    import hashlib

    folder, known = tmp_path / "clone", {}
    (folder / "task1" / "surprise").mkdir(parents=True)
    for name, rows in (("cornish-train-low", 100), ("cornish-dev", 50)):
        data = b"a\tb\tV\n" * rows
        (folder / "task1" / "surprise" / name).write_bytes(data)
        known[name] = (rows, hashlib.sha256(data).hexdigest())
    real = corpora.conll2018()
    assert [real[name][0] for name in known] == [rows for rows, _ in known.values()]
    assert len(real) == 394
    monkeypatch.setattr(corpora, "conll2018", lambda: known)
    return folder


def test_multilabel_data_and_sentence_pairs(monkeypatch) -> None:
    monkeypatch.setattr(corpora, "MULAN", {})
    Path("mulan").mkdir()
    rows = "".join(f"{n},0\n" for n in range(502))
    Path("mulan/cal500.arff").write_text(f"@relation x\n@attribute a numeric\n@data\n{rows}")
    Path("mulan/cal500.xml").write_text("<labels/>")
    words = ["cal500", "--from", "mulan", "--out", "data", "--test"]
    assert ended(corpora.main, words) == 0
    parts = [Path(f"data/cal500-{part}.arff").read_text() for part in ("train", "test")]
    lines = [set(part.split("@data\n")[1].splitlines()) for part in parts]
    assert [len(each) for each in lines] == [400, 102]
    assert not lines[0] & lines[1]
    with zipfile.ZipFile("mulan/snli_1.0.zip", "w") as archive:
        for part in ("train", "dev", "test"):
            archive.writestr(f"snli_1.0/snli_1.0_{part}.jsonl", part)
    assert ended(corpora.main, ["snli", "--from", "mulan", "--out", "snli"]) == 0
    assert Path("snli/snli_1.0_dev.jsonl").read_text() == "dev"
    assert "--symbols" in refused(corpora.main, ["snli", "--out", "x", "--symbols", "9"])
