"""Parallel corpora for `corpora.py`: read in their published forms, and prepared.

A copy is checked by its numbers of lines, a download by checksums, too.
"""

from __future__ import annotations

import argparse
import io
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from onmt_entmax.cli import prepare_files
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import text_lines
from tools.papers.archives import members
from tools.papers.corpus_files import Get, check_sha256, getter
from tools.papers.parallel_texts import Sides, sentences, split_tatoeba


@dataclass(frozen=True)
class ParallelCorpus:
    """How a corpus is published and prepared.

    corpora.yaml explains all attributes but `name`, which are its keys.
    """

    name: str
    languages: Sequence[str]
    files: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]
    url: str | None = None
    remote: Mapping[str, Sequence[str]] = field(default_factory=dict)
    archive: str | None = None
    inside: str = ""
    table: str | None = None
    prepare: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)


_KEYS = yaml.safe_load(Path(__file__).with_name("corpora.yaml").read_text(encoding="utf-8"))
PARALLEL = {name: ParallelCorpus(name, **keys) for name, keys in _KEYS.items()}
NO_CHECKSUMS: Mapping[str, str] = {}  # of a local copy


def read_parallel(corpus: ParallelCorpus, source: Path | None) -> dict[str, Sides]:
    """Return the lines of each part of a corpus.

    Args:
        corpus: the corpus to read.
        source: folder of a local copy; None downloads.

    Raises:
        UserError: a file cannot be read or downloaded, or a part does not have its published size.
    """
    return _downloaded(corpus) if source is None else _read_copy(corpus, source)


def _read_copy(corpus: ParallelCorpus, folder: Path) -> dict[str, Sides]:
    """Return the lines of each part of a local copy, which may lack the test set.

    Raises:
        UserError: another file is missing, or a part does not have its published size.
    """
    get = getter(folder, url="")
    parts = {}
    for part, patterns in corpus.files.items():
        first = patterns[0].format(corpus.languages[0])
        if part == "test" and not any(folder.glob(f"{first}*")):
            print(f"{folder}: no test set ({first})", file=sys.stderr)
            continue
        parts[part] = _read_part(corpus, part, patterns, get)
    return parts


def _downloaded(corpus: ParallelCorpus) -> dict[str, Sides]:
    """Return the lines of each part of a corpus as it was published.

    Raises:
        UserError: a file cannot be downloaded, or has another checksum or size than published.
    """
    get = _remote(corpus)
    if corpus.table is not None:
        return split_tatoeba(list(text_lines(io.BytesIO(get(corpus.table)), corpus.table)))
    return {
        part: _read_part(corpus, part, patterns, get, checksums=corpus.sha256)
        for part, patterns in {**corpus.files, **corpus.remote}.items()
    }


def _remote(corpus: ParallelCorpus) -> Get:
    """Return a function that reads the files of a corpus from where it was published.

    Raises:
        UserError: it is not downloaded.
    """
    if corpus.url is None:
        raise UserError(f"{corpus.name} is not downloaded: name your copy with --from FOLDER")
    get = getter(None, corpus.url)
    if corpus.archive is None:
        return get
    print(f"downloading {corpus.archive}", file=sys.stderr, flush=True)
    return members(corpus.archive, get(corpus.archive), corpus.inside)


def _read_part(
    corpus: ParallelCorpus,
    part: str,
    patterns: Sequence[str],
    get: Get,
    *,
    checksums: Mapping[str, str] = NO_CHECKSUMS,
) -> Sides:
    """Return the lines of both languages of a part.

    Args:
        corpus: the corpus to read.
        part: such as train.
        patterns: patterns of the names of its files, in order; {} stands for the language.
        get: reads a file.
        checksums: known SHA-256 of all files of a language together, by `part.language`.

    Raises:
        UserError: a file cannot be read or downloaded, or has another checksum or number of lines
            than published.
    """
    expected = corpus.counts[part]
    sides = []
    for language in corpus.languages:
        side = f"{part}.{language}"
        contents = {file: get(file) for file in (pattern.format(language) for pattern in patterns)}
        check_sha256(b"".join(contents.values()), checksums.get(side), side)
        lines = [
            line
            for file, content in contents.items()
            for line in sentences(list(text_lines(io.BytesIO(content), file)), file)
        ]
        if len(lines) != expected:
            raise UserError(
                f"{corpus.name}: {side} has {counted(len(lines), 'line')}, expected {expected:,}; "
                "the copy is cut or another one"
            )
        sides.append(lines)
    return sides


def _preparation(
    corpus: ParallelCorpus, folder: Path, out: Path, parts: Sequence[str]
) -> list[str]:
    """Return the arguments of `prepare files` for a corpus.

    Args:
        corpus: the corpus to prepare.
        folder: folder that has its text.
        out: folder to fill.
        parts: parts of the corpus, such as train.
    """
    arguments = ["--out", str(out), "--languages", *corpus.languages]
    for part in parts:
        arguments += [f"--{part}", *(str(folder / f"{part}.{code}") for code in corpus.languages)]
    return [*arguments, *shlex.split(corpus.prepare)]


def prepare_parallel(
    corpus: ParallelCorpus, options: argparse.Namespace, more: Sequence[str]
) -> int:
    """Prepare a parallel corpus; return the exit status of `prepare files`.

    Args:
        corpus: the corpus to prepare.
        options: options of the command line.
        more: further arguments of `prepare files`.

    Raises:
        UserError: see `read_parallel`; or the folder to fill is the one that is read.
    """
    if options.source and options.source.resolve() == options.out.resolve():
        raise UserError(f"--out {options.out}: is the folder that is read; name another")
    parts = read_parallel(corpus, options.source)
    with TemporaryDirectory() as folder:
        for part, sides in parts.items():
            for language, lines in zip(corpus.languages, sides, strict=True):
                text = "".join(f"{line}\n" for line in lines)
                Path(folder, f"{part}.{language}").write_bytes(text.encode())
        arguments = _preparation(corpus, Path(folder), options.out, list(parts))
        return prepare_files.main([*arguments, *more])
