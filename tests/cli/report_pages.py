"""Calls of `onmt-entmax report` for tests, with a small model and its report."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import report
from onmt_entmax.config import ModelConfig
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.in_process import exit_status
from tests.search.networks import DECODERS, SMALL_SIZES, VOCABULARIES, network


def write_report(folder: Path) -> None:
    """Write two models, and the report of the first one on three sentences and a blank line."""
    for number in range(2):
        model = network("input-feeding", 1.5, 8 + number, double=False)
        config = ModelConfig(**{**SMALL_SIZES, **DECODERS["input-feeding"]}, generator_alpha=1.5)
        save(folder / f"model{number}", model, config, VOCABULARIES, {})
    task = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=10))
    translator = Translator.from_folders([folder / "model0"], task)
    lines = ["a b c", "", "d", "a a b d"]
    with open(folder / "report.jsonl", "w", encoding="utf-8") as file:
        for answer in translator.answers(lines):
            file.write(json.dumps(answer_record(answer)) + "\n")


def arguments(
    folder: Path, *options: str, model: str = "model0", records: str = "report.jsonl"
) -> list[str]:
    """Return the arguments of a call with a model and a report in a folder, and its page there."""
    files = {"model": model, "report": records, "output": "page.html"}
    paths = [word for name, file in files.items() for word in (f"-{name}", str(folder / file))]
    return [*paths, *options]


class Page(NamedTuple):
    """A page, and the data in it, by the names of their elements."""

    text: str
    data: dict[str, Any]


def write_page(folder: Path, *options: str) -> Page:
    """Make the page of the report."""
    assert exit_status(report.main, arguments(folder, *options)) == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    elements = re.findall(r'<script type="application/json" id="([^"]+)">(.*)</script>', text)
    return Page(text, {name: json.loads(content) for name, content in elements})
