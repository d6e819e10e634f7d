"""Parallel corpora, which corpora.yaml lists: read in their published forms, and prepared."""

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

    Args:
        name: of the corpus.
        source: folder of a local copy; None downloads.

    Raises:
        UserError: a file cannot be had, or a part has not its published size.
    """
    corpus = PARALLEL[name]
    files = dict(corpus["files"])
    if source is None:
        get = _remote(name)
        files |= corpus.get("remote", {})
        if name == "tatoeba":
            return split_tatoeba(list(text_lines(io.BytesIO(get("deu.txt")), "deu.txt")))
    else:
        get = getter(source, "")
    parts = {}
    for part, patterns in files.items():
        first = patterns[0].format(corpus["languages"][0])
        if part == "test" and source and not any(source.glob(f"{first}*")):
            print(f"{source}: no test set ({first})", file=sys.stderr)
            continue
        sides = []
        for language in corpus["languages"]:
            contents = {}
            for pattern in patterns:
                file = pattern.format(language)
                contents[file] = get(file)
            if source is None:
                sha256 = corpus.get("sha256", {}).get(f"{part}.{language}")
                check(b"".join(contents.values()), sha256, f"{part}.{language}")
            sides.append(_lines(name, part, language, contents))
        parts[part] = sides
    return parts


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


def _lines(name: str, part: str, language: str, contents: Mapping[str, bytes]) -> list[str]:
    """Return the sentences of one language of a part.

    Args:
        name: of the corpus.
        part: such as train.
        language: its code.
        contents: by file, in order.

    Raises:
        UserError: there are more or fewer than published.
    """
    lines = [
        line
        for file, content in contents.items()
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


def parallel(name: str, options: argparse.Namespace, more: Sequence[str]) -> None:
    """Prepare a parallel corpus.

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
        prepare_files.main([*preparation(name, Path(folder), options.out, list(parts)), *more])
