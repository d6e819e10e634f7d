"""Parallel corpora: local copies that `tools.papers.corpora` prepares, and the split of Tatoeba."""

import hashlib
import html
import io
import json
import math
import re
import zipfile
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_files
from tests.in_process import exit_status, refusal
from tools.papers import corpora, corpus_files, parallel_corpora, parallel_texts

SIZES = {"train": 120, "val": 20, "test": 20}  # of the copies here


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def small_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expect the sizes of the copies here, whose text is enough for few symbols."""
    for name, corpus in parallel_corpora.PARALLEL.items():
        counts = {part: SIZES[part] for part in corpus["counts"]}
        options = re.sub(r"--symbols \d+", "--symbols 60", corpus.get("prepare", ""))
        changes = {"counts": counts, "sha256": {}, "prepare": options}
        monkeypatch.setitem(parallel_corpora.PARALLEL, name, {**corpus, **changes})


def lines_of(language: str, part: str) -> list[str]:
    """Return the sentences of a part, in the script of the language; `&` tests the markup."""
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
            size = math.ceil(len(lines) / len(patterns))
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
    assert exit_status(corpora.main, [name, "--from", "copy", "--out", "out"]) == 0
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
    line = refusal(corpora.main, [name, "--from", "copy", "--out", "out"], progress=True)
    assert "the copy is cut or another one" in line


def test_a_copy_without_a_file_is_refused(name: str, copy: Path) -> None:
    first_needed_file(copy).unlink()
    line = refusal(corpora.main, [name, "--from", "copy", "--out", "out"], progress=True)
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
    assert message in refusal(corpora.main, ["multi30k", *arguments])


def test_a_corpus_without_an_address_is_not_downloaded() -> None:
    line = refusal(corpora.main, ["wmt16", "--out", "out"])
    assert "wmt16 is not downloaded: name your copy with --from FOLDER" in line


def publish(monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes]) -> None:
    """Let downloads below the address of a corpus return these files."""
    url = parallel_corpora.PARALLEL[name]["url"]
    published = {f"{url}/{file}": content for file, content in files.items()}
    monkeypatch.setattr(corpus_files, "download", published.__getitem__)


def test_the_downloaded_files_of_a_part_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {}
    for language in ("en", "ja"):
        train = published_text("", lines_of(language, "train")).encode().splitlines(keepends=True)
        for number in range(5):  # each has 24 of 120 lines
            lines = train[24 * number : 24 * (number + 1)]
            files[f"train.{language}.{number:03}"] = b"".join(lines)
        for file, part in (("dev", "val"), ("test", "test")):
            files[f"{file}.{language}"] = published_text("", lines_of(language, part)).encode()
    publish(monkeypatch, "tanaka", files)
    assert parallel_corpora.read_parallel("tanaka", None) == {
        part: [lines_of("en", part), lines_of("ja", part)] for part in SIZES
    }


def test_a_download_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = published_text("", lines_of("de", "train")).encode()
    names = [f"train.lc.norm.tok.{language}" for language in ("de", "en")]
    publish(monkeypatch, "multi30k", dict.fromkeys(names, text))
    sha256 = {"train.de": hashlib.sha256(text).hexdigest(), "train.en": 64 * "0"}
    monkeypatch.setitem(parallel_corpora.PARALLEL["multi30k"], "sha256", sha256)
    line = refusal(corpora.main, ["multi30k", "--out", "out"])
    assert "train.en: has another checksum" in line


def test_the_exit_status_is_that_of_prepare_files(monkeypatch: pytest.MonkeyPatch) -> None:
    write_copy("multi30k")
    monkeypatch.setattr(prepare_files, "main", lambda arguments: 3)
    assert exit_status(corpora.main, ["multi30k", "--from", "copy", "--out", "out"]) == 3


# Two of its sentences have the same English side.
TATOEBA = [f"e{n}\tg{n}\tCC" for n in range(3000)] + ["e7\tg7", "e7\tother"]


def test_the_split_of_tatoeba_depends_on_no_order() -> None:
    assert parallel_texts.split_tatoeba(TATOEBA) == parallel_texts.split_tatoeba(TATOEBA[::-1])


def test_the_dev_set_of_tatoeba_has_its_size() -> None:
    german, english = parallel_texts.split_tatoeba(TATOEBA)["val"]
    assert len(german) == len(english) == parallel_texts.TATOEBA_VAL


def test_the_split_of_tatoeba_leaves_nothing_out() -> None:
    parts = parallel_texts.split_tatoeba(TATOEBA).values()
    pairs = {(english, german) for part in parts for german, english in zip(*part, strict=True)}
    assert pairs == {tuple(line.split("\t")[:2]) for line in TATOEBA}


def test_no_english_sentence_of_tatoeba_is_in_both_parts() -> None:
    parts = parallel_texts.split_tatoeba(TATOEBA)
    (_, train), (_, val) = parts["train"], parts["val"]
    assert not {*train} & {*val}


def test_tatoeba_is_downloaded_as_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("deu.txt", "".join(f"{line}\n" for line in TATOEBA))
    publish(monkeypatch, "tatoeba", {"deu-eng.zip": archive.getvalue()})
    parts = parallel_corpora.read_parallel("tatoeba", None).values()
    pairs = {(english, german) for part in parts for german, english in zip(*part, strict=True)}
    assert pairs == {tuple(line.split("\t")[:2]) for line in TATOEBA}
