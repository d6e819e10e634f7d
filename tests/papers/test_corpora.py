"""`tools.papers.corpora`: local copies of parallel corpora, and other data."""

import hashlib
import html
import json
import zipfile
from pathlib import Path

import pytest

from tests.ended import ended, refused
from tools.papers import corpora, parallel_corpora, shared_task

SIZES = {"train": 120, "val": 20, "test": 20}  # of the copies here


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- parallel corpora ---


@pytest.fixture(autouse=True)
def small_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expect the sizes of the copies here, whose text is enough for few symbols."""
    for name, corpus in parallel_corpora.PARALLEL.items():
        counts = {part: SIZES[part] for part in corpus["counts"]}
        options, *_ = corpus.get("prepare", "").split("--symbols")  # the last option
        changes = {"counts": counts, "sha256": {}, "prepare": f"{options} --symbols 60"}
        monkeypatch.setitem(parallel_corpora.PARALLEL, name, {**corpus, **changes})


def lines_of(language: str, part: str) -> list[str]:
    letters = "犬走吠通" if language == "ja" else "abcd"
    return [f"{letters[n % 4] * (n % 3 + 1)} x{n} & {part} ." for n in range(SIZES[part])]


def published_text(file: str, lines: list[str]) -> str:
    """Return the text of a file in the format that its ending stands for."""
    if file.endswith((".sgm", ".xml")):  # sets of WMT and of IWSLT, for development and test
        lines = ["<doc>", *(f"<seg id='1'> {html.escape(line)} </seg>" for line in lines)]
    elif file.startswith("train.tags."):  # the training text of IWSLT, with lines of metadata
        lines = ["<url>http://x</url>", *lines]
    return "".join(f"{line}\n" for line in lines)


def write_copy(name: str) -> Path:
    """Write the files of a corpus as its makers publish them; a part may have several."""
    folder = Path("copy")
    folder.mkdir()
    for part, patterns in parallel_corpora.PARALLEL[name]["files"].items():
        for language in parallel_corpora.PARALLEL[name]["languages"]:
            lines = lines_of(language, part)
            size = -(-len(lines) // len(patterns))  # rounded up
            for number, pattern in enumerate(patterns):
                file = pattern.format(language)
                text = published_text(file, lines[number * size : (number + 1) * size])
                (folder / file.replace("*", "x")).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(params=list(parallel_corpora.PARALLEL))
def name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def copy(name: str) -> Path:
    return write_copy(name)


@pytest.mark.usefixtures("copy")
def test_a_local_copy_is_prepared(name: str) -> None:
    assert ended(corpora.main, [name, "--from", "copy", "--out", "out"]) == 0
    pairs = json.loads(Path("out/prepare.json").read_text())["pairs"]
    for part in parallel_corpora.PARALLEL[name]["counts"]:
        assert pairs[part] == SIZES[part]
        folder = Path("out/test" if part == "test" else "out")
        for language in parallel_corpora.PARALLEL[name]["languages"]:
            text = (folder / f"{part}.{language}").read_text(encoding="utf-8")
            assert text.splitlines() == lines_of(language, part)


def first_needed_file(copy: Path) -> Path:
    """Return a file without which the copy is refused; of a missing test set there is a note."""
    return next(path for path in sorted(copy.iterdir()) if not path.name.startswith("test"))


def test_a_cut_copy_is_refused(name: str, copy: Path) -> None:
    path = first_needed_file(copy)
    path.write_bytes(path.read_bytes()[:-20])
    line = refused(corpora.main, [name, "--from", "copy", "--out", "out"], progress=True)
    assert "the copy is cut or another one" in line


def test_a_copy_without_a_file_is_refused(name: str, copy: Path) -> None:
    first_needed_file(copy).unlink()
    line = refused(corpora.main, [name, "--from", "copy", "--out", "out"], progress=True)
    assert "copy: no file" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "copy", "--out", "copy"], "is the folder that is read"),
        (["snli", "--out", "out"], "a folder of its own"),
        (["--test", "--out", "out"], "--test is not of"),
    ],
)
def test_wrong_options_of_a_parallel_corpus_are_refused(arguments: list[str], message: str) -> None:
    write_copy("multi30k")
    assert message in refused(corpora.main, ["multi30k", *arguments])


# Two of its sentences have the same English side.
TATOEBA = [f"e{n}\tg{n}\tCC" for n in range(3000)] + ["e7\tg7", "e7\tother"]


def test_the_split_of_tatoeba_depends_on_no_order() -> None:
    assert parallel_corpora.split_tatoeba(TATOEBA) == parallel_corpora.split_tatoeba(TATOEBA[::-1])


def test_the_split_of_tatoeba_has_its_size_and_leaves_nothing_out() -> None:
    parts = parallel_corpora.split_tatoeba(TATOEBA)
    assert len(parts["val"][0]) == parallel_corpora.TATOEBA_VAL
    assert sum(len(german) for german, _ in parts.values()) >= 3000


def test_no_english_sentence_of_tatoeba_is_in_both_parts() -> None:
    parts = parallel_corpora.split_tatoeba(TATOEBA)
    (_, train), (_, val) = parts["train"], parts["val"]
    assert not {*train} & {*val}


# --- the shared task ---

CORNISH = {"cornish-train-low": 100, "cornish-dev": 50}  # rows
SIGMORPHON = ["sigmorphon", "--out", "rows", "--from", "clone", "--settings", "low"]


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files as in a clone of the repository, whose checksums are known."""
    folder, known = Path("clone/task1/surprise"), {}
    folder.mkdir(parents=True)
    for name, rows in CORNISH.items():
        content = b"a\tb\tV\n" * rows
        (folder / name).write_bytes(content)
        known[name] = (rows, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(shared_task, "conll2018", lambda: known)
    return folder


def test_the_list_of_the_shared_task_has_all_files() -> None:
    files = shared_task.conll2018()
    assert len(files) == 394
    assert {name: files[name][0] for name in CORNISH} == CORNISH


@pytest.mark.usefixtures("clone")
def test_sigmorphon_is_fetched_once(capsys: pytest.CaptureFixture[str]) -> None:
    for fetched in (2, 0):
        assert ended(corpora.main, [*SIGMORPHON, "--languages", "cornish"]) == 0
        assert f"2 files, 150 rows; {fetched} fetched" in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_a_misspelt_language_is_refused() -> None:
    line = refused(corpora.main, [*SIGMORPHON, "--languages", "cornsh"])
    assert "no language 'cornsh'; did you mean 'cornish'?" in line


def test_a_damaged_file_is_fetched_again_and_compared(clone: Path) -> None:
    """Here its source is damaged, too."""
    assert ended(corpora.main, [*SIGMORPHON, "--languages", "cornish"]) == 0
    for path in (Path("rows/cornish-dev"), clone / "cornish-dev"):
        path.write_text("a\tb\tV\n")
    line = refused(corpora.main, [*SIGMORPHON, "--languages", "cornish"], progress=True)
    assert "cornish-dev: has another checksum" in line


# --- multi-label data and sentence pairs ---


def test_cal500_is_split_into_400_and_102_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MULAN", {})  # no checksums
    Path("mulan").mkdir()
    rows = "".join(f"{n},0\n" for n in range(502))
    Path("mulan/cal500.arff").write_text(f"@relation x\n@attribute a numeric\n@data\n{rows}")
    Path("mulan/cal500.xml").write_text("<labels/>")
    arguments = ["cal500", "--from", "mulan", "--out", "data", "--test"]
    assert ended(corpora.main, arguments) == 0
    train, test = (
        set(Path(f"data/cal500-{part}.arff").read_text().split("@data\n")[1].splitlines())
        for part in ("train", "test")
    )
    assert (len(train), len(test)) == (400, 102)
    assert not train & test


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_snli_is_unpacked(part: str) -> None:
    Path("copy").mkdir()
    with zipfile.ZipFile("copy/snli_1.0.zip", "w") as archive:
        for content in ("train", "dev", "test"):
            archive.writestr(f"snli_1.0/snli_1.0_{content}.jsonl", content)
    assert ended(corpora.main, ["snli", "--from", "copy", "--out", "snli"]) == 0
    assert Path(f"snli/snli_1.0_{part}.jsonl").read_text() == part


def test_options_of_parallel_corpora_are_of_no_other_data() -> None:
    assert "--symbols" in refused(corpora.main, ["snli", "--out", "x", "--symbols", "9"])
