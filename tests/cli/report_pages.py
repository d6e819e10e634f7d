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

NETWORK = "input-feeding"  # a small recurrent network
CONFIG = ModelConfig(**{**SMALL_SIZES, **DECODERS[NETWORK]}, generator_alpha=1.5)
LINES = ["a b c", "", "d", "a a b d"]


# Different weights, so that the report of one model does not fit the other.
SEEDS = {"model0": 8, "model1": 9}


def write_report(folder: Path) -> None:
    """Write the models of SEEDS, and a report of `model0` on LINES, `report.jsonl`, to a folder."""
    for name, seed in SEEDS.items():
        model = network(NETWORK, CONFIG.generator_alpha, seed, double=False)
        save(folder / name, model, CONFIG, VOCABULARIES, {})
    task = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=10))
    translator = Translator.from_folders([folder / "model0"], task)
    with open(folder / "report.jsonl", "w", encoding="utf-8") as file:
        for answer in translator.answers(LINES):
            file.write(json.dumps(answer_record(answer)) + "\n")


def arguments_in(
    folder: Path, *options: str, model: str = "model0", records: str = "report.jsonl"
) -> list[str]:
    """Return the arguments of a call, with all files in a folder.

    Args:
        folder: has the model and the report, and receives the page, `page.html`.
        options: other options.
        model: name of the model's folder.
        records: name of the report.
    """
    return [
        "-model", str(folder / model),
        "-report", str(folder / records),
        "-output", str(folder / "page.html"),
        *options,
    ]  # fmt: skip


class Page(NamedTuple):
    """A page that the command wrote.

    Attributes:
        text: its HTML.
        data: the JSON in it, by the ids of the elements that hold it.
    """

    text: str
    data: dict[str, Any]


def write_page(folder: Path, *options: str) -> Page:
    """Run the command on the model and the report of a folder, and return the page."""
    assert exit_status(report.main, arguments_in(folder, *options)) == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    return Page(text, _json_elements(text))


def _json_elements(html: str) -> dict[str, Any]:
    """Return the content of the JSON elements of a page, each of which is one line, by id."""
    elements = re.findall(r'<script type="application/json" id="([^"]+)">(.*)</script>', html)
    data = {name: json.loads(content) for name, content in elements}
    assert "records" in data, "`page.py` writes the JSON of a page in another way than is read here"
    return data
