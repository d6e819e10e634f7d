"""Public parallel corpora, and their preparation: download, normalise, filter, learn subwords."""

from __future__ import annotations

import gzip
import hashlib
import html
import importlib
import io
import lzma
import random
import re
import sys
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from onmt_entmax.data.download import Limits, check, download
from onmt_entmax.errors import UserError, counted

Pairs = list[tuple[str, str]]
PARTS = ("train", "val")
TEST = "test"  # the part that neither training nor selection reads
TATOEBA_VAL = 1500  # pairs in the development set that is split off
LARGEST = 1 << 30  # bytes of a downloaded file, and of a file in an archive
SECONDS = 7200  # longest download of a file
# How to read a file by its ending, which local copies may have besides their own.
_READERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
}
# What a damaged or unexpected archive raises.
_ARCHIVE_ERRORS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, KeyError, OSError)


@dataclass(frozen=True)
class Corpus:
    """A public corpus.

    Attributes:
        languages: source and target.
        counts: expected number of lines of each part; empty: not checked.
        local: files of each part in a local folder, with `{}` for the language, to be
            concatenated; `*` stands for any characters.
        url: folder of its files; empty: only a local copy can be used.
        files: files of each part below `url`, with `{}` for the language, to be concatenated; or
            members of the archive.
        archive: name of the archive below `url`, if there is one.
        tokens: whether the corpus is tokenised, with spaces between tokens.
        subwords: `bpe`, or `sentencepiece` for text without spaces.
        symbols: default number of merges or pieces.
        max_tokens: default length limit of a training sentence.
        max_ratio: default limit of the ratio of lengths in a training pair.
        sha256: known checksums of the files of each part and language, such as `train.de`.
    """

    languages: tuple[str, str]
    counts: Mapping[str, int]
    local: Mapping[str, tuple[str, ...]]
    url: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    archive: str | None = None
    tokens: bool = False
    subwords: str = "bpe"
    symbols: int = 10_000
    max_tokens: int = 100
    max_ratio: float = 9.0
    sha256: Mapping[str, str] = field(default_factory=dict)


_GITHUB = "https://raw.githubusercontent.com"
_MULTI30K = {
    "train": ("train.lc.norm.tok.{}",),
    "val": ("val.lc.norm.tok.{}",),
    "test": ("test_2016_flickr.lc.norm.tok.{}",),
}
_KFTT = "kftt-data-1.0/data"
_IWSLT = "IWSLT17.TED.{}.de-en.{{}}.xml"
CORPORA = {
    # Elliott et al. 2016; lowercased, normalised and tokenised by its makers. CC BY-NC-SA.
    "multi30k": Corpus(
        ("de", "en"),
        {"train": 29_000, "val": 1_014, "test": 1_000},
        _MULTI30K,
        f"{_GITHUB}/multi30k/dataset/a3d2e0d/data/task1/tok",
        _MULTI30K,
        tokens=True,
        sha256={
            "train.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
            "train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
            "val.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
            "val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
        },
    ),
    # 50,000 short sentences of the Tanaka corpus, tokenised by KyTea and Stepp. CC BY.
    "tanaka": Corpus(
        ("en", "ja"),
        {"train": 50_000, "val": 500, "test": 500},
        {"train": ("train.{}",), "val": ("dev.{}",), "test": ("test.{}",)},
        f"{_GITHUB}/odashi/small_parallel_enja/312408a",
        {
            "train": tuple(f"train.{{}}.{n:03}" for n in range(5)),
            "val": ("dev.{}",),
            "test": ("test.{}",),
        },
        tokens=True,
        symbols=8_000,
        sha256={
            "train.en": "148b05dcd28638fe20ee84f2b1127001c80982be352007dda241fb759adadc76",
            "train.ja": "fc81a1434349ec98a449d7ae9cd2530057f689637684ecfed3501ea6a8a07ecc",
            "val.en": "04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041",
            "val.ja": "cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca",
        },
    ),
    # Short sentences for learners (tatoeba.org), as text. CC BY 2.0 FR.
    "tatoeba": Corpus(
        ("de", "en"),
        {"train": 165_392, "val": TATOEBA_VAL},
        {"train": ("train.{}",), "val": ("dev.{}",)},
        f"{_GITHUB}/rioyshky/translation/de48b702",
        archive="deu-eng.zip",
    ),
    # Neubig 2011, Wikipedia articles on Kyoto. CC BY-SA 3.0 (NICT). The task's own tokens, and
    # training pairs of at most 40 words: the 329,882 of Peters et al. 2019, all of which are kept.
    "kftt": Corpus(
        ("ja", "en"),
        {"train": 329_882, "val": 1_166, "test": 1_160},
        {"train": ("kyoto-train.cln.{}",), "val": ("kyoto-dev.{}",), "test": ("kyoto-test.{}",)},
        "https://www.phontron.com/kftt/download",
        {
            "train": (f"{_KFTT}/tok/kyoto-train.cln.{{}}",),
            "val": (f"{_KFTT}/tok/kyoto-dev.{{}}",),
            "test": (f"{_KFTT}/tok/kyoto-test.{{}}",),
        },
        archive="kftt-data-1.0.tar.gz",
        tokens=True,
        symbols=32_000,
        max_tokens=10_000,
        max_ratio=10_000,
    ),
    # The same articles as text without spaces.
    "kftt-raw": Corpus(
        ("ja", "en"),
        {"train": 440_288, "val": 1_166, "test": 1_160},
        {"train": ("kyoto-train.{}",), "val": ("kyoto-dev.{}",), "test": ("kyoto-test.{}",)},
        "https://www.phontron.com/kftt/download",
        {
            "train": (f"{_KFTT}/orig/kyoto-train.{{}}",),
            "val": (f"{_KFTT}/orig/kyoto-dev.{{}}",),
            "test": (f"{_KFTT}/orig/kyoto-test.{{}}",),
        },
        archive="kftt-data-1.0.tar.gz",
        subwords="sentencepiece",
        symbols=32_000,
        max_tokens=50,
    ),
    # Cettolo et al. 2017, TED talks, as the archive `de-en` has them. CC BY-NC-ND.
    "iwslt17": Corpus(
        ("de", "en"),
        {"train": 206_112, "val": 888, "test": 8_079},
        {
            "train": ("train.tags.de-en.{}",),
            "val": (_IWSLT.format("dev2010"),),
            "test": tuple(_IWSLT.format(f"tst{year}") for year in range(2010, 2016)),
        },
        symbols=32_000,
    ),
    # Bojar et al. 2016: Europarl and SETimes; news.
    "wmt16": Corpus(
        ("ro", "en"),
        {"train": 612_422, "val": 1_999, "test": 1_999},
        {
            "train": ("europarl-v*.ro-en.{}", "SETIMES*.en-ro.{}"),
            "val": ("newsdev2016-roen-*.{}.sgm",),
            "test": ("newstest2016-roen-*.{}.sgm",),
        },
        symbols=32_000,
    ),
    # Bojar et al. 2014, tokenised and cleaned by Luong et al. 2015 (nlp.stanford.edu/projects/nmt).
    "wmt14": Corpus(
        ("en", "de"),
        {"train": 4_468_840, "val": 3_000, "test": 2_737},
        {"train": ("train.{}",), "val": ("newstest2013.{}",), "test": ("newstest2014.{}",)},
        tokens=True,
        symbols=32_000,
    ),
}


def to_lines(data: bytes, name: str) -> list[str]:
    """Return the lines of UTF-8 text, which only line feeds separate.

    Raises:
        UserError: the data is not UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name}: line {line} is not UTF-8 text") from None
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, or of the same name with .xz or .gz.

    Raises:
        UserError: there is no such file, or it cannot be read.
    """
    for ending in _READERS:
        found = Path(f"{path}{ending}")
        if found.is_file():
            try:
                data = found.read_bytes()
                return to_lines(_READERS.get(found.suffix, bytes)(data), str(found))
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise UserError(f"{found}: cannot read: {error}") from None
    raise UserError(f"{path}: no such file, nor with .xz or .gz")


def read_pairs(source: Path, target: Path) -> Pairs:
    """Return the pairs of lines of two files.

    Raises:
        UserError: a file cannot be read, or they differ in length.
    """
    return align(read_lines(source), read_lines(target), f"{source} and {target}")


def align(source: list[str], target: list[str], name: str) -> Pairs:
    """Return the pairs of lines of two sides; `name` is for the error.

    Raises:
        UserError: the sides differ in length.
    """
    if len(source) != len(target):
        raise UserError(
            f"{name}: {counted(len(source), 'line')} and {counted(len(target), 'line')}; they must "
            "correspond line by line"
        )
    return list(zip(source, target, strict=True))


def check_counts(name: str, pairs: Mapping[str, Pairs], counts: Mapping[str, int]) -> None:
    """Check the sizes of the parts of a corpus against the published ones.

    Raises:
        UserError: a part has another size.
    """
    for part, expected in counts.items():
        if part in pairs and len(pairs[part]) != expected:
            raise UserError(
                f"{name}: {part} has {counted(len(pairs[part]), 'pair')}, expected {expected:,}; "
                "the copy is cut or another one"
            )


def fetch(
    corpus: Corpus, url: str, timeout: float, known: Mapping[str, str]
) -> tuple[dict[str, Pairs], dict[str, str]]:
    """Download a corpus.

    Args:
        corpus: its description.
        url: folder of its files.
        timeout: seconds to wait for a response.
        known: SHA-256 of files by name, besides those of the description.

    Returns:
        The pairs of each part, and the SHA-256 of each downloaded file.

    Raises:
        UserError: the download fails, or the files are not the expected ones.
    """
    found: dict[str, str] = {}

    def get(name: str) -> bytes:
        address = f"{url.rstrip('/')}/{name}"
        data = download(address, Limits(timeout, SECONDS, LARGEST), progress=True)
        found[name] = hashlib.sha256(data).hexdigest()
        check(data, known.get(name), address)
        return data

    if corpus.archive is None:
        return _assemble(corpus, get), found
    data = get(corpus.archive)
    try:
        if corpus.archive.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as zipped:
                _check_size("deu.txt", zipped.getinfo("deu.txt").file_size)
                return split_tatoeba(to_lines(zipped.read("deu.txt"), "deu.txt")), found
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return _assemble(corpus, lambda name: _member(archive, name)), found
    except _ARCHIVE_ERRORS as error:
        raise UserError(
            f"{url}: {corpus.archive} is not the archive that was expected: {error}"
        ) from None


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is not a file")
    _check_size(name, archive.getmember(name).size)
    return file.read()


def _check_size(name: str, size: int) -> None:
    if size > LARGEST:
        raise OSError(f"{name} has {size:,} bytes, more than {LARGEST:,}")


def _assemble(corpus: Corpus, get: Callable[[str], bytes]) -> dict[str, Pairs]:
    pairs = {}
    for part, names in corpus.files.items():
        sides = []
        for language in corpus.languages:
            data = b"".join(get(name.format(language)) for name in names)
            check(data, corpus.sha256.get(f"{part}.{language}"), f"{part}.{language}")
            sides.append(to_lines(data, f"{part}.{language}"))
        pairs[part] = align(sides[0], sides[1], part)
    return pairs


def split_tatoeba(lines: list[str]) -> dict[str, Pairs]:
    """Split the distinct pairs of `English<TAB>German<TAB>...` lines by English sentence.

    The sentences with the smallest hashes become the development set, so the split does not depend
    on the order of lines. No English sentence is in both parts.

    Raises:
        UserError: a line has another form.
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
    """Read a corpus from a local folder; return the pairs of each part. It may lack the test set.

    Raises:
        UserError: a file is missing or cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    pairs = {}
    for part, names in corpus.local.items():
        sides = [[_found(folder, name.format(lang)) for name in names] for lang in corpus.languages]
        if part == TEST and not any(map(_is_there, sides[0])):
            note(f"{folder}: no test set ({sides[0][0].name})")
            continue
        source, target = (
            [line for path in side for line in _sentences(read_lines(path), path.name)]
            for side in sides
        )
        pairs[part] = align(source, target, f"{sides[0][0]} and {sides[1][0]}")
    return pairs


def _found(folder: Path, pattern: str) -> Path:
    """Return the one path of a pattern without the endings .xz and .gz; else the pattern's own.

    Raises:
        UserError: there are several.
    """
    paths = {
        path.with_suffix("") if path.suffix in _READERS else path
        for end in _READERS
        for path in folder.glob(pattern + end)
    }
    if len(paths) > 1:
        raise UserError(f"{folder}: several files are {pattern}: {', '.join(map(str, paths))}")
    return paths.pop() if paths else folder / pattern


def _is_there(path: Path) -> bool:
    return any(Path(f"{path}{end}").is_file() for end in _READERS)


_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>")


def _sentences(lines: list[str], name: str) -> list[str]:
    """Return the sentences of a file of WMT or IWSLT with markup; of any other, all lines."""
    if name.endswith((".sgm", ".xml")):
        return [html.unescape(text) for line in lines for text in _SEGMENT.findall(line)]
    if name.startswith("train.tags."):
        return [line for line in lines if not line.lstrip().startswith("<")]
    return lines


def note(message: str) -> None:
    """Print a line about progress to stderr."""
    print(message, file=sys.stderr, flush=True)


# --- preparation -----------------------------------------------------------------------------

# Escapes of Moses' tokeniser; `&` must come last.
_MOSES = {
    "&quot;": '"',
    "&apos;": "'",
    "&lt;": "<",
    "&gt;": ">",
    "&#124;": "|",
    "&#91;": "[",
    "&#93;": "]",
    "&amp;": "&",
}
# Removes all diacritics, comma and cedilla forms alike, as Sennrich et al. 2016 ("Edinburgh Neural
# Machine Translation Systems for WMT 16"), section 3.1.
_ROMANIAN = str.maketrans("ŞşŢţȘșȚțĂăÂâÎî", "SsTtSsTtAaAaIi")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff]")
# Marks of pyonmttok, and the characters that replace them in a text.
_MARKS = str.maketrans("￭￨▁｟｠", "■│_⦅⦆")

# Options of pyonmttok: tokenised text is split at spaces, other text also at punctuation and
# changes of script; SentencePiece needs no words. `no_substitution`, because a substitution (`%`
# for a full-width one) cannot be undone.
_MODES: dict[str, dict[str, Any]] = {
    "tokens": {"mode": "space", "joiner_annotate": True, "no_substitution": True},
    "text": {"mode": "aggressive", "joiner_annotate": True, "no_substitution": True},
    "sentencepiece": {"mode": "none"},
}


@dataclass(frozen=True)
class SubwordPlan:
    """Settings of the subwords to learn.

    Attributes:
        kind: `bpe` or `sentencepiece`.
        symbols: merges of BPE or pieces of SentencePiece, for each model.
        joint: whether both languages share one model.
        tokens: whether the corpus is tokenised.
    """

    kind: str
    symbols: int
    joint: bool
    tokens: bool

    @property
    def settings(self) -> dict[str, Any]:
        """Options of pyonmttok, for `src_onmttok_kwargs` and `tgt_onmttok_kwargs`."""
        words = "tokens" if self.tokens else "text"
        return dict(_MODES[words if self.kind == "bpe" else self.kind])


def unescape_moses(line: str) -> str:
    """Undo the escapes of Moses' tokeniser."""
    for escaped, plain in _MOSES.items():
        line = line.replace(escaped, plain)
    return line


def normalise(line: str, language: str, tokens: bool) -> str:
    """Normalise a line: NFC, single spaces, Romanian without diacritics.

    Marks of pyonmttok are replaced by similar characters. In a tokenised corpus, escapes of Moses'
    tokeniser are undone.
    """
    line = unicodedata.normalize("NFC", _CONTROL.sub(" ", line)).translate(_MARKS)
    if tokens:
        line = unescape_moses(line)
    if language == "ro":
        line = line.translate(_ROMANIAN)
    return " ".join(line.split())


def normalise_pairs(pairs: Pairs, languages: tuple[str, str], tokens: bool) -> Pairs:
    """Normalise both sides of pairs: see `normalise`."""
    first, second = languages
    return [(normalise(s, first, tokens), normalise(t, second, tokens)) for s, t in pairs]


def hold_out(pairs: Pairs, size: int, seed: int) -> dict[str, Pairs]:
    """Split off a random development set of `size` pairs.

    The training part keeps no sentence of it, on either side.

    Raises:
        UserError: there are too few pairs.
    """
    distinct = sorted({pair for pair in pairs if all(pair)})
    if size >= len(distinct):
        raise UserError(
            f"cannot hold out {size:,} of {counted(len(distinct), 'distinct pair')}; "
            "lower --val_size, or name dev files with --val"
        )
    chosen = random.Random(seed).sample(distinct, size)
    sources, targets = {pair[0] for pair in chosen}, {pair[1] for pair in chosen}
    train = [pair for pair in pairs if pair[0] not in sources and pair[1] not in targets]
    return {"train": train, "val": chosen}


def filter_pairs(
    pairs: Pairs, lengths: Iterable[tuple[int, int]], limit: int, ratio: float
) -> Pairs:
    """Drop pairs with a side that is empty, longer than `limit`, or `ratio` times the other."""
    return [
        pair
        for pair, (first, second) in zip(pairs, lengths, strict=True)
        if 0 < first <= limit
        and 0 < second <= limit
        and max(first, second) <= ratio * min(first, second)
    ]


def pyonmttok() -> ModuleType:
    """Import pyonmttok, on which OpenNMT-py depends.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module("pyonmttok")
    except ImportError as error:
        raise UserError(f"pyonmttok is needed ({error}): pip install pyonmttok") from None


def tokeniser(plan: SubwordPlan, model: Path) -> Any:
    """Return the tokeniser of OpenNMT-py's transform `onmt_tokenize` for the same options."""
    key = "bpe_model_path" if plan.kind == "bpe" else "sp_model_path"
    return pyonmttok().Tokenizer(**plan.settings, **{key: str(model)})


def learn(plan: SubwordPlan, texts: Iterable[Iterable[str]], model: Path) -> Any:
    """Learn subwords, deterministically; return the tokeniser.

    Args:
        plan: kind and number of subwords.
        texts: lines of one language, or of both.
        model: the file to write.

    Raises:
        UserError: the text is too small for so many symbols.
    """
    module = pyonmttok()
    if plan.kind == "bpe":
        words = module.Tokenizer(**plan.settings)
        learner = module.BPELearner(tokenizer=words, symbols=plan.symbols)
    else:
        learner = module.SentencePieceLearner(
            vocab_size=plan.symbols,
            model_type="bpe",
            character_coverage=0.9995,
            normalization_rule_name="identity",  # keep the text, full-width forms included
            num_threads=1,
            minloglevel=2,
        )
    for lines in texts:
        for line in lines:
            learner.ingest(line)
    try:
        learner.learn(str(model))
    except RuntimeError as error:
        raise UserError(f"cannot learn {counted(plan.symbols, 'subword')}: {error}") from None
    return tokeniser(plan, model)
