"""The parallel corpora that `tools/prepare_mt.py` knows: where they are, what they must hold."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import lzma
import sys
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.errors import UserError

Pairs = list[tuple[str, str]]
PARTS = ("train", "val")
TATOEBA_VAL = 1500  # pairs of the development set that is split off
# What reading an archive raises where it is damaged or another one.
_NO_ARCHIVE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, KeyError, OSError)


@dataclass(frozen=True)
class Corpus:
    """A public corpus.

    Attributes:
        languages: of the two sides.
        counts: lines a part must have, by part; none are checked where it is empty.
        local: names of a part's file in a local folder, by part, the language left out.
        url: where its files are.
        files: the files of a part below `url`, the language left out; they are put together.
            For a corpus in one archive, its members.
        archive: the name of that archive below `url`.
        tokens: whether it comes as tokens between spaces; else as text.
        subwords: `bpe`, or `sentencepiece` for text without spaces.
        symbols: merges or pieces that are learned by default.
        max_tokens: of a training sentence, by default.
    """

    languages: tuple[str, str]
    counts: Mapping[str, int]
    local: Mapping[str, str]
    url: str
    files: Mapping[str, tuple[str, ...]]
    archive: str | None = None
    tokens: bool = False
    subwords: str = "bpe"
    symbols: int = 10_000
    max_tokens: int = 100


_GITHUB = "https://raw.githubusercontent.com"
CORPORA = {
    # Elliott et al. 2016; lowercased, normalised and tokenised by its makers. CC BY-NC-SA.
    "multi30k": Corpus(
        ("de", "en"),
        {"train": 29_000, "val": 1_014},
        {"train": "train.lc.norm.tok.{}", "val": "val.lc.norm.tok.{}"},
        f"{_GITHUB}/multi30k/dataset/a3d2e0d/data/task1/tok",
        {"train": ("train.lc.norm.tok.{}",), "val": ("val.lc.norm.tok.{}",)},
        tokens=True,
    ),
    # 50,000 short sentences of the Tanaka corpus, tokenised by KyTea and Stepp. CC BY.
    "tanaka": Corpus(
        ("en", "ja"),
        {"train": 50_000, "val": 500},
        {"train": "train.{}", "val": "dev.{}"},
        f"{_GITHUB}/odashi/small_parallel_enja/312408a",
        {"train": tuple(f"train.{{}}.{n:03}" for n in range(5)), "val": ("dev.{}",)},
        tokens=True,
        symbols=8_000,
    ),
    # Short sentences for learners (tatoeba.org), as text. CC BY 2.0 FR.
    "tatoeba": Corpus(
        ("de", "en"),
        {"train": 165_392, "val": TATOEBA_VAL},
        {"train": "train.{}", "val": "dev.{}"},
        f"{_GITHUB}/rioyshky/translation/de48b702",
        {},
        archive="deu-eng.zip",
    ),
    # Neubig 2011, Wikipedia articles on Kyoto, as text without spaces. CC BY-SA 3.0 (NICT).
    "kftt": Corpus(
        ("ja", "en"),
        {"train": 440_288, "val": 1_166},
        {"train": "kyoto-train.{}", "val": "kyoto-dev.{}"},
        "http://www.phontron.com/kftt/download",
        {
            "train": ("kftt-data-1.0/data/orig/kyoto-train.{}",),
            "val": ("kftt-data-1.0/data/orig/kyoto-dev.{}",),
        },
        archive="kftt-data-1.0.tar.gz",
        subwords="sentencepiece",
        symbols=32_000,
        max_tokens=50,
    ),
}


def to_lines(data: bytes, name: str) -> list[str]:
    """Lines of UTF-8 text, divided at line feeds only.

    Raises:
        UserError: it is not UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name}: line {line} is not UTF-8 text") from None
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def read_lines(path: Path) -> list[str]:
    """Lines of a text file; one of the same name with .xz or .gz is read where it is not there.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    openers: dict[str, Callable[[bytes], bytes]] = {
        ".xz": lzma.decompress,
        ".gz": gzip.decompress,
    }
    for suffix in ("", *openers):
        found = Path(f"{path}{suffix}")
        if found.is_file():
            try:
                data = found.read_bytes()
                return to_lines(openers.get(found.suffix, bytes)(data), str(found))
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise UserError(f"{found}: cannot read: {error}") from None
    raise UserError(f"{path}: no such file, nor with .xz or .gz")


def read_pairs(source: Path, target: Path) -> Pairs:
    """Lines of two files that correspond.

    Raises:
        UserError: one cannot be read, or they differ in length.
    """
    return align(read_lines(source), read_lines(target), f"{source} and {target}")


def align(source: list[str], target: list[str], name: str) -> Pairs:
    """Lines of two sides that correspond.

    Raises:
        UserError: they differ in length.
    """
    if len(source) != len(target):
        raise UserError(
            f"{name}: {len(source)} and {len(target)} lines; they must correspond line by line"
        )
    return list(zip(source, target, strict=True))


def check_counts(name: str, pairs: Mapping[str, Pairs], counts: Mapping[str, int]) -> None:
    """Compare the sizes of a corpus with what its makers say.

    Raises:
        UserError: a part has another size.
    """
    for part, expected in counts.items():
        if len(pairs[part]) != expected:
            raise UserError(
                f"{name}: {part} has {len(pairs[part])} pairs, expected {expected}; "
                "the copy is cut or another one"
            )


def download(address: str, timeout: float) -> bytes:
    """The bytes at an address, with a bar of progress.

    Raises:
        UserError: no connection, or an answer other than the file.
    """
    chunks = []
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:
            total = int(answer.headers.get("Content-Length") or 0) or None
            name = address.rsplit("/", 1)[-1]
            with tqdm(total=total, unit="B", unit_scale=True, desc=name, disable=None) as bar:
                while chunk := answer.read(1 << 16):
                    chunks.append(chunk)
                    bar.update(len(chunk))
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise UserError(
            f"{address}: cannot download: {reason}; run again, or give a local copy with "
            "--from FOLDER"
        ) from None
    return b"".join(chunks)


def fetch(corpus: Corpus, url: str, timeout: float) -> dict[str, Pairs]:
    """A corpus from where it is published.

    Raises:
        UserError: it cannot be had, or is not what it should be.
    """
    base = url.rstrip("/")
    if corpus.archive is None:
        return _assemble(corpus, lambda name: download(f"{base}/{name}", timeout))
    address = f"{base}/{corpus.archive}"
    data = download(address, timeout)
    try:
        if corpus.archive.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return split_tatoeba(to_lines(archive.read("deu.txt"), "deu.txt"))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return _assemble(corpus, lambda name: _member(archive, name))
    except _NO_ARCHIVE as error:
        raise UserError(f"{address}: not the archive that was expected: {error}") from None


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is not a file")
    return file.read()


def _assemble(corpus: Corpus, get: Callable[[str], bytes]) -> dict[str, Pairs]:
    pairs = {}
    for part, names in corpus.files.items():
        sides = []
        for language in corpus.languages:
            data = b"".join(get(name.format(language)) for name in names)
            sides.append(to_lines(data, f"{part}.{language}"))
        pairs[part] = align(sides[0], sides[1], part)
    return pairs


def split_tatoeba(lines: list[str]) -> dict[str, Pairs]:
    """Distinct pairs of `English<TAB>German<TAB>...` lines, split by the English sentence.

    The sentences with the smallest hashes make the development set, so that the split depends on
    no order; no English sentence is on both sides of it.

    Raises:
        UserError: a line is not of this form.
    """
    by_sentence: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise UserError(f"deu.txt: line {number} is not `English<TAB>German`")
        by_sentence.setdefault(columns[0], []).append(columns[1])
    ranked = sorted(by_sentence, key=lambda text: hashlib.sha256(text.encode()).digest())
    pairs: dict[str, Pairs] = {"train": [], "val": []}
    for english in ranked:
        part = "val" if len(pairs["val"]) < TATOEBA_VAL else "train"
        pairs[part] += [(german, english) for german in sorted(set(by_sentence[english]))]
    del pairs["val"][TATOEBA_VAL:]  # further translations of the last sentence
    return pairs


def local(corpus: Corpus, folder: Path) -> dict[str, Pairs]:
    """A corpus from files in a folder.

    Raises:
        UserError: a file is missing, or cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    first, second = corpus.languages
    return {
        part: read_pairs(folder / name.format(first), folder / name.format(second))
        for part, name in corpus.local.items()
    }


def note(message: str) -> None:
    """Say what is being done."""
    print(message, file=sys.stderr, flush=True)
