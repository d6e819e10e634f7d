"""Download the corpora of the papers, or take them from a folder, and prepare them.

    python -m tools.papers.corpora multi30k --out run/mt/multi30k
    python -m tools.papers.corpora wmt16 --out run/mt/roen --from my-copy \\
        --subwords separate --symbols 25000
    python -m tools.papers.corpora sigmorphon --out conll2018 --settings medium \\
        --languages english german
    python -m tools.papers.corpora scene emotions birds cal500 --out run/multilabel/data --test
    python -m tools.papers.corpora snli --out snli --from my-copy

Translation: multi30k, tanaka, tatoeba, kftt, kftt-raw, iwslt17, wmt16, wmt14. Sizes are compared
with the published ones, and `onmt-entmax prepare files` makes subwords and a configuration; further
arguments go to it. iwslt17, wmt16 and wmt14 need a local copy.

sigmorphon: CoNLL-SIGMORPHON 2018, task 1; --test takes the test sets too, whose checksums are not
known. CC BY-SA.

scene, emotions, birds, cal500, reuters: the multi-label data of Martins and Astudillo (2016), in
Mulan's splits (1,211, 391 and 322 training rows; in the paper 1,211, 393 and 323). cal500 has no
split: a fixed random choice of 400 of its 502 rows is the training file (in the paper 400 and 100).
reuters (RCV1-v2) comes through scikit-learn; never tried, for want of the data.

snli: Stanford's corpus of sentence pairs (Bowman et al. 2015), version 1.0. CC BY-SA 4.0.

Files with known checksums are compared with them, and not fetched again: after an interruption, run
the same command.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import http.client
import io
import lzma
import random
import re
import shlex
import sys
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import quoteattr

import yaml
from tqdm import tqdm

from onmt_entmax.cli import prepare_files
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.cli.prepare_sigmorphon import SETTINGS
from onmt_entmax.cli.tables import read_rows
from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import text_lines, write_files

PARALLEL = yaml.safe_load(Path(__file__).with_name("corpora.yaml").read_text(encoding="utf-8"))
CONLL2018 = Path(__file__).with_name("conll2018.tsv")
CONLL_URL = "https://raw.githubusercontent.com/sigmorphon/conll2018/490e2e0"
MULAN_URL = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
MULAN = {
    "scene.xml": "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
    "scene-train.arff": "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
    "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
    "emotions-train.arff": "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98",
    "birds.xml": "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f",
    "birds-train.arff": "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36",
    "cal500.xml": "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
}
MULTILABEL = ("scene", "emotions", "birds", "cal500", "reuters")
SNLI_URL = "https://nlp.stanford.edu/projects/snli"
TATOEBA_VAL = 1500  # pairs in the development set that is split off
UNPACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
}  # by ending

Get = Callable[[str], bytes]  # the content of a file, by name


def download(address: str) -> bytes:
    """Return the content of a file.

    Raises:
        UserError: it cannot be downloaded.
    """
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UserError(
            f"{address}: cannot be downloaded ({error}); try again, or name a copy with --from"
        ) from None


def getter(source: Path | None, url: str, folders: Sequence[str] = ("",)) -> Get:
    """Return a function that reads files from a folder, or from below an address.

    Args:
        source: a folder, whose files may be compressed; None downloads.
        url: address.
        folders: below either, to be searched one after the other.
    """

    if source is None:
        return partial(_download_from, url, folders)
    if not source.is_dir():
        raise UserError(f"{source}: no such folder")
    return partial(_read_from, source, folders)


def _download_from(url: str, folders: Sequence[str], name: str) -> bytes:
    """Return the content of a file below an address, from the first folder that has it."""
    for folder in folders[:-1]:
        try:
            return download("/".join(filter(None, (url, folder, name))))
        except UserError:  # it may be in the next one
            continue
    return download("/".join(filter(None, (url, folders[-1], name))))


def _read_from(source: Path, folders: Sequence[str], name: str) -> bytes:
    """Return the content of a file below a folder, unpacked.

    Args:
        source: the folder.
        folders: below it, to be searched one after the other.
        name: of the file, which may have wildcards, without the ending of a compressed one.
    """
    for folder in folders:
        for ending, unpack in UNPACKED.items():
            paths = sorted((source / folder).glob(name + ending))
            if len(paths) > 1:
                raise UserError(f"{source}: several files are {name}: {paths[0]}, {paths[1]}")
            for path in paths:
                try:
                    return unpack(path.read_bytes())
                except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                    raise UserError(f"{path}: cannot be read: {error}") from None
    raise UserError(f"{source}: no file {name}")


def check(content: bytes, sha256: str | None, name: str) -> bytes:
    """Return content that has a checksum, if one is known.

    Raises:
        UserError: it has another one.
    """
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{name}: has another checksum; the copy is cut, damaged or another one")
    return content


def fetch(out: Path, files: Mapping[str, str | None], get: Get) -> int:
    """Write the files that are not there with their checksums; return how many these are."""
    fetched = 0
    for name, sha256 in tqdm(files.items(), unit="file", disable=None):
        path = out / name
        if path.is_file() and sha256 in (None, hashlib.sha256(path.read_bytes()).hexdigest()):
            continue
        write_files({path: check(get(name), sha256, name)})
        fetched += 1
    return fetched


# --- parallel text ---------------------------------------------------------------------------


def members(name: str, content: bytes, inside: str) -> Get:
    """Return a function that reads the files in a folder of an archive.

    Args:
        name: of the archive.
        content: of the archive.
        inside: the folder in it.
    """
    return partial(_member, name, content, inside)


def _member(name: str, content: bytes, inside: str, member: str) -> bytes:
    """Return the content of a file in a folder of an archive; see :func:`members`."""
    path = f"{inside}/{member}".lstrip("/")
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as zipped:
                return zipped.read(path)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            file = archive.extractfile(path)
            return b"" if file is None else file.read()
    except (
        zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError,
        KeyError,
    ) as error:  # fmt: skip
        raise UserError(f"{name}: is not the archive that was expected: {error}") from None


def sentences(lines: list[str], name: str) -> list[str]:
    """Return the sentences of a file of WMT or IWSLT with markup; of any other, all lines."""
    if name.endswith((".sgm", ".xml")):
        of_lines = (re.findall(r"<seg\b[^>]*>(.*?)</seg>", line) for line in lines)
        return [html.unescape(text) for segments in of_lines for text in segments]
    if name.startswith("train.tags."):
        return [line for line in lines if not line.lstrip().startswith("<")]
    return lines


def split_tatoeba(lines: Sequence[str]) -> dict[str, list[list[str]]]:
    """Split the distinct pairs of `English<TAB>German<TAB>...` lines by English sentence.

    The sentences with the smallest hashes become the development set, so the split does not depend
    on the order of lines. No English sentence is in both parts.

    Returns:
        The German and the English lines of each part.
    """
    by_sentence: dict[str, set[str]] = {}
    for line in lines:
        english, german, *_ = line.split("\t")
        by_sentence.setdefault(english, set()).add(german)
    ranked = sorted(by_sentence, key=lambda text: hashlib.sha256(text.encode()).digest())
    parts: dict[str, list[list[str]]] = {"train": [[], []], "val": [[], []]}
    for english in ranked:
        part = parts["val" if len(parts["val"][0]) < TATOEBA_VAL else "train"]
        for german in sorted(by_sentence[english]):
            part[0].append(german)
            part[1].append(english)
    for side in parts["val"]:
        del side[TATOEBA_VAL:]  # further translations of the last sentence
    return parts


def read_parallel(name: str, source: Path | None) -> dict[str, list[list[str]]]:
    """Return the lines of both languages of each part of a corpus.

    Raises:
        UserError: a file cannot be had, or a part has not its published size.
    """
    corpus = PARALLEL[name]
    if source is None and "url" not in corpus:
        raise UserError(f"{name} is not downloaded: name your copy with --from FOLDER")
    get, files = getter(source, corpus.get("url", "")), dict(corpus["files"])
    if source is None:
        files |= corpus.get("remote", {})
        if "archive" in corpus:
            print(f"downloading {corpus['archive']}", file=sys.stderr, flush=True)
            get = members(corpus["archive"], get(corpus["archive"]), corpus.get("inside", ""))
        if name == "tatoeba":
            return split_tatoeba(list(text_lines(io.BytesIO(get("deu.txt")), "deu.txt")))
    parts = {}
    for part, patterns in files.items():
        first = patterns[0].format(corpus["languages"][0])
        if part == "test" and source and not any(source.glob(f"{first}*")):
            print(f"{source}: no test set ({first})", file=sys.stderr)
            continue
        sides = []
        for language in corpus["languages"]:
            contents = {
                file: get(file) for file in (pattern.format(language) for pattern in patterns)
            }
            if source is None:
                sha256 = corpus.get("sha256", {}).get(f"{part}.{language}")
                check(b"".join(contents.values()), sha256, f"{part}.{language}")
            lines = [
                line
                for file, content in contents.items()
                for line in sentences(list(text_lines(io.BytesIO(content), file)), file)
            ]
            if len(lines) != corpus["counts"][part]:
                expected = f"{corpus['counts'][part]:,}"
                raise UserError(
                    f"{name}: {part}.{language} has {counted(len(lines), 'line')}, expected "
                    f"{expected}; the copy is cut or another one"
                )
            sides.append(lines)
        parts[part] = sides
    return parts


def preparation(name: str, folder: Path, out: Path, parts: Sequence[str]) -> list[str]:
    """Return the arguments of `prepare files` for a corpus whose text is in a folder."""
    languages = PARALLEL[name]["languages"]
    arguments = ["--out", str(out), "--languages", *languages]
    for part in parts:
        arguments += [f"--{part}", *(str(folder / f"{part}.{code}") for code in languages)]
    return [*arguments, *shlex.split(PARALLEL[name].get("prepare", ""))]


def parallel(name: str, options: argparse.Namespace, more: Sequence[str]) -> None:
    """Prepare a parallel corpus; `more` arguments are of `prepare files`."""
    if options.source and options.source.resolve() == options.out.resolve():
        raise UserError(f"--out {options.out}: is the folder that is read; name another")
    parts = read_parallel(name, options.source)
    with TemporaryDirectory() as folder:
        for part, sides in parts.items():
            for language, lines in zip(PARALLEL[name]["languages"], sides, strict=True):
                text = "".join(f"{line}\n" for line in lines)
                Path(folder, f"{part}.{language}").write_bytes(text.encode())
        prepare_files.main([*preparation(name, Path(folder), options.out, list(parts)), *more])


# --- inflection, multi-label data and sentence pairs -----------------------------------------


def conll2018() -> dict[str, tuple[int, str]]:
    """Return rows and SHA-256 of the files of the shared task, such as `english-train-medium`."""
    _, *lines = CONLL2018.read_text(encoding="utf-8").splitlines()
    return {name: (int(rows), sha256) for name, rows, sha256 in map(str.split, lines)}


def sigmorphon(options: argparse.Namespace) -> None:
    """Fetch training and development files of the shared task."""
    known = conll2018()
    languages = dict.fromkeys(re.sub("-(train-.*|dev)$", "", name) for name in known)
    trains = [f"train-{setting}" for setting in options.settings]
    files: dict[str, str | None] = {}
    for language in languages if options.languages == ["all"] else options.languages:
        if language not in languages:
            raise UserError(f"no language {language!r}{nearest(language, languages)}")
        present = [train for train in trains if f"{language}-{train}" in known]
        if len(present) < len(trains) and options.languages != ["all"]:
            lacking = next(train for train in trains if train not in present)
            raise UserError(f"{language} has no {lacking}; leave it out of --languages")
        files |= {f"{language}-{part}": known[f"{language}-{part}"][1] for part in present}
        if present:
            files[f"{language}-dev"] = known[f"{language}-dev"][1]
        if present and options.test:
            files[f"{language}-test"] = None
    folders = ["task1/all", "task1/surprise", *([""] if options.source else [])]
    fetched = fetch(options.out, files, getter(options.source, CONLL_URL, folders))
    for name in files:
        if name.endswith("-test"):
            read_rows(options.out / name)
    rows = counted(sum(known[name][0] for name in files if name in known), "row")
    if options.test:
        rows += " besides the test sets"
    print(
        f"{options.out}: {counted(len(files), 'file')}, {rows}; "
        f"{fetched} fetched, the rest was there"
    )


def multilabel(name: str, options: argparse.Namespace) -> None:
    """Fetch a multi-label data set."""
    out, get = options.out, getter(options.source, f"{MULAN_URL}/{name}")
    parts = ["train", "test"] if options.test else ["train"]
    if name == "reuters":
        if options.source:
            raise UserError("reuters comes through scikit-learn, not from a folder")
        return _reuters(out, parts)
    files: dict[str, str | None] = dict.fromkeys(
        [f"{name}.xml", *(f"{name}-{part}.arff" for part in parts)]
    )
    files |= {file: MULAN[file] for file in files if file in MULAN}
    if name == "cal500":
        get = partial(_cal500, get)
    fetched = fetch(out, files, get)
    print(f"{out}: {name}: {counted(len(files), 'file')}, {fetched} fetched")


def _cal500(get: Get, file: str) -> bytes:
    """Return a file of cal500, whose training and test rows are a fixed choice of all rows."""
    if file == "cal500.xml":
        return get(file)
    head, mark, data = re.split(rb"(?im)^(@data.*\n|\Z)", get("cal500.arff"), maxsplit=1)
    rows = [row for row in data.splitlines(keepends=True) if row.strip()]
    if len(rows) < 400:
        raise UserError("cal500.arff: cut short")
    training = set(random.Random(500).sample(range(len(rows)), 400))
    wants_training = file == "cal500-train.arff"
    chosen = (row for index, row in enumerate(rows) if (index in training) is wants_training)
    return head + mark + b"".join(chosen)


def _reuters(out: Path, parts: Sequence[str]) -> None:
    """Write RCV1-v2 as SVMlight, through scikit-learn, which compares checksums of its own."""
    try:
        from sklearn.datasets import dump_svmlight_file, fetch_rcv1
    except ImportError:
        raise UserError('scikit-learn is missing: pip install -e ".[papers]"') from None
    for part in parts:
        data, content = fetch_rcv1(subset=part), io.BytesIO()
        dump_svmlight_file(data.data, data.target, content, zero_based=False, multilabel=True)
        names = "".join(f"<label name={quoteattr(name)}></label>\n" for name in data.target_names)
        labels = f"<labels>\n{names}</labels>\n"
        write_files({out / f"reuters-{part}.svm": content.getvalue(), out / "reuters.xml": labels})
        print(f"{out}: reuters-{part}.svm, reuters.xml")


def snli(options: argparse.Namespace) -> None:
    """Unpack SNLI."""
    name = "snli_1.0.zip"
    content = getter(options.source, SNLI_URL)(name)
    get = members(name, content, "snli_1.0")
    files = [f"snli_1.0_{part}.jsonl" for part in ("train", "dev", "test")]
    write_files({options.out / file: get(file) for file in files})
    print(f"{name}: sha256 {hashlib.sha256(content).hexdigest()}")
    print(f"{options.out}: {', '.join(files)}")


def main(arguments: Sequence[str]) -> int:
    """Fetch and prepare; return the exit status."""
    parser = argument_parser(__doc__)
    add: Any = parser.add_argument
    names = (*PARALLEL, "sigmorphon", *MULTILABEL, "snli")
    add("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add("--from", dest="source", type=Path, metavar="FOLDER", help="folder with a local copy")
    add("--test", action="store_true", help="test sets too (of sigmorphon and multi-label data)")
    add("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, help="of sigmorphon")
    add("--languages", nargs="+", default=["all"], help="of sigmorphon (default: all)")
    options, more = parser.parse_known_args(arguments)
    if more and options.names[0] not in PARALLEL:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if len(options.names) > 1 and {*options.names} & {*PARALLEL}:
        parser.error("a parallel corpus needs a command and a folder of its own")
    for option, corpora in (
        ("languages", {"sigmorphon"}),
        ("settings", {"sigmorphon"}),
        ("test", {"sigmorphon", *MULTILABEL}),
    ):
        is_given = vars(options)[option] != parser.get_default(option)
        if is_given and not corpora.intersection(options.names):
            parser.error(f"--{option} is not of {options.names[0]}")
    for name in options.names:
        if name in PARALLEL:
            parallel(name, options, more)
        elif name in MULTILABEL:
            multilabel(name, options)
        else:
            {"sigmorphon": sigmorphon, "snli": snli}[name](options)
    return 0


if __name__ == "__main__":
    run_script(main)
