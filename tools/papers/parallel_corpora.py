"""Parallel corpora for `corpora.py`: read in their published forms, and prepared.

`corpora.yaml` says how each is published. A copy is checked by its numbers of lines, a download by
checksums, too.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import io
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from onmt_entmax.cli import prepare_files
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import text_lines
from tools.papers.corpus_files import Get, check, getter, members

PARALLEL = yaml.safe_load(Path(__file__).with_name("corpora.yaml").read_text(encoding="utf-8"))
TATOEBA_VAL = 1500  # pairs in the development set that is split off

Sides = list[list[str]]  # the lines of the source language, and those of the target language


def sentences(lines: list[str], name: str) -> list[str]:
    """Return the sentences of a file of WMT or IWSLT with markup; of any other, all lines."""
    if name.endswith((".sgm", ".xml")):
        of_lines = (re.findall(r"<seg\b[^>]*>(.*?)</seg>", line) for line in lines)
        return [html.unescape(text) for segments in of_lines for text in segments]
    if name.startswith("train.tags."):
        return [line for line in lines if not line.lstrip().startswith("<")]
    return lines


def split_tatoeba(lines: Sequence[str]) -> dict[str, Sides]:
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
    parts: dict[str, Sides] = {"train": [[], []], "val": [[], []]}
    for english in ranked:
        part = parts["val" if len(parts["val"][0]) < TATOEBA_VAL else "train"]
        for german in sorted(by_sentence[english]):
            part[0].append(german)
            part[1].append(english)
    for side in parts["val"]:
        del side[TATOEBA_VAL:]  # further translations of the last sentence
    return parts


def read_parallel(name: str, source: Path | None) -> dict[str, Sides]:
    """Return the lines of each part of a corpus.

    Args:
        name: of the corpus.
        source: folder of a local copy; None downloads.

    Raises:
        UserError: a file cannot be had, or a part has not its published size.
    """
    return _downloaded(name) if source is None else _read_copy(name, source)


def _read_copy(name: str, folder: Path) -> dict[str, Sides]:
    """Return the lines of each part of a local copy, which may lack the test set.

    Raises:
        UserError: another file is missing, or a part has not its published size.
    """
    corpus = PARALLEL[name]
    get = getter(folder, "")
    parts = {}
    for part, patterns in corpus["files"].items():
        first = patterns[0].format(corpus["languages"][0])
        if part == "test" and not any(folder.glob(f"{first}*")):
            print(f"{folder}: no test set ({first})", file=sys.stderr)
            continue
        contents = _contents(corpus["languages"], patterns, get)
        parts[part] = _sides(name, part, contents)
    return parts


def _downloaded(name: str) -> dict[str, Sides]:
    """Return the lines of each part of a corpus as it was published.

    Raises:
        UserError: a file cannot be downloaded, or has another checksum or size than published.
    """
    corpus = PARALLEL[name]
    get = _remote(name)
    if "table" in corpus:
        table = corpus["table"]
        return split_tatoeba(list(text_lines(io.BytesIO(get(table)), table)))
    parts = {}
    for part, patterns in {**corpus["files"], **corpus.get("remote", {})}.items():
        contents = _contents(corpus["languages"], patterns, get)
        for language, files in contents.items():
            sha256 = corpus.get("sha256", {}).get(f"{part}.{language}")
            check(b"".join(files.values()), sha256, f"{part}.{language}")
        parts[part] = _sides(name, part, contents)
    return parts


def _contents(
    languages: Sequence[str], patterns: Sequence[str], get: Get
) -> dict[str, dict[str, bytes]]:
    """Return the content of each file of a part, in order, by language and name.

    Args:
        languages: their codes, which stand in the place of {} in the patterns.
        patterns: of the names of files.
        get: reads a file.

    Raises:
        UserError: a file cannot be had.
    """
    contents: dict[str, dict[str, bytes]] = {}
    for language in languages:
        files = [pattern.format(language) for pattern in patterns]
        contents[language] = {file: get(file) for file in files}
    return contents


def _sides(name: str, part: str, contents: Mapping[str, Mapping[str, bytes]]) -> Sides:
    """Return the lines of both languages of a part.

    Args:
        name: of the corpus.
        part: such as train.
        contents: of the part's files, by language.

    Raises:
        UserError: a language has more or fewer lines than published.
    """
    return [_lines(name, part, language, files) for language, files in contents.items()]


def _remote(name: str) -> Get:
    """Return a function that reads the files of a corpus from where it was published.

    Raises:
        UserError: it is not downloaded.
    """
    corpus = PARALLEL[name]
    if "url" not in corpus:
        raise UserError(f"{name} is not downloaded: name your copy with --from FOLDER")
    get = getter(None, corpus["url"])
    if "archive" not in corpus:
        return get
    print(f"downloading {corpus['archive']}", file=sys.stderr, flush=True)
    return members(corpus["archive"], get(corpus["archive"]), corpus.get("inside", ""))


def _lines(name: str, part: str, language: str, files: Mapping[str, bytes]) -> list[str]:
    """Return the sentences of one language of a part.

    Args:
        name: of the corpus.
        part: such as train.
        language: its code.
        files: contents by name, in order.

    Raises:
        UserError: there are more or fewer than published.
    """
    lines = [
        line
        for file, content in files.items()
        for line in sentences(list(text_lines(io.BytesIO(content), file)), file)
    ]
    expected = PARALLEL[name]["counts"][part]
    if len(lines) != expected:
        raise UserError(
            f"{name}: {part}.{language} has {counted(len(lines), 'line')}, expected {expected:,}; "
            "the copy is cut or another one"
        )
    return lines


def preparation(name: str, folder: Path, out: Path, parts: Sequence[str]) -> list[str]:
    """Return the arguments of `prepare files` for a corpus whose text is in a folder."""
    languages = PARALLEL[name]["languages"]
    arguments = ["--out", str(out), "--languages", *languages]
    for part in parts:
        arguments += [f"--{part}", *(str(folder / f"{part}.{code}") for code in languages)]
    return [*arguments, *shlex.split(PARALLEL[name].get("prepare", ""))]


def parallel(name: str, options: argparse.Namespace, more: Sequence[str]) -> int:
    """Prepare a parallel corpus; return the exit status of `prepare files`.

    Args:
        name: of the corpus.
        options: of the command line.
        more: further arguments of `prepare files`.

    Raises:
        UserError: see `read_parallel`; or the folder to fill is the one that is read.
    """
    if options.source and options.source.resolve() == options.out.resolve():
        raise UserError(f"--out {options.out}: is the folder that is read; name another")
    parts = read_parallel(name, options.source)
    with TemporaryDirectory() as folder:
        for part, sides in parts.items():
            for language, lines in zip(PARALLEL[name]["languages"], sides, strict=True):
                text = "".join(f"{line}\n" for line in lines)
                Path(folder, f"{part}.{language}").write_bytes(text.encode())
        arguments = preparation(name, Path(folder), options.out, list(parts))
        return prepare_files.main([*arguments, *more])
