"""`onmt-entmax prepare sigmorphon`: the commands that it prints, from training to a report."""

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.preparing import commands_in, next_commands, read_lines, shorten_training
from tests.cli.sigmorphon import SAMPLES, prepare_into
from tests.commands import succeed

ROWS = 20  # of each table
LANGUAGES = ("english", "german")


class Example(NamedTuple):
    """A folder that was prepared from small tables, and the commands that were printed."""

    folder: Path
    commands: list[str]


@pytest.fixture
def example(tmp_path: Path) -> Example:
    for language in LANGUAGES:
        for part in ("train", "dev"):
            rows = read_lines(SAMPLES / f"{language}-{part}")[:ROWS]
            text = "".join(f"{row}\n" for row in rows)
            (tmp_path / f"{language}-{part}").write_text(text, encoding="utf-8")
    folder = tmp_path / "a: b"  # shells and YAML read this path otherwise without quotes
    prepared = prepare_into(folder, "--data", tmp_path)
    return Example(folder, next_commands(prepared.printed))


def sources_on(page: str) -> list[str]:
    """Return the sources of the records on the page of a report."""
    (records,) = re.findall(r'<script type="application/json" id="records">(.*?)</script>', page)
    return [record["source"] for record in json.loads(records)]


def test_commands_from_training_to_a_report_are_printed(example: Example) -> None:
    names = [command.split()[1] for command in example.commands]
    assert names == ["train", "inflect", "predict", "evaluate", "translate", "report"]


def test_the_printed_query_is_of_a_prepared_language(example: Example) -> None:
    _, inflect, *_ = example.commands
    words = shlex.split(inflect)
    assert words[1:4] == ["inflect", "--model", f"{example.folder}/model"]
    assert words[4] in LANGUAGES


def test_the_printed_commands_stand_in_the_configuration(example: Example) -> None:
    comments, *_ = (example.folder / "train.yaml").read_text().partition("\ndata:")
    assert commands_in(comments) == example.commands


def test_the_printed_commands_make_a_report_on_all_dev_rows(example: Example) -> None:
    """They run here with fewer updates and a smaller model."""
    shorten_training(example.folder / "train.yaml")
    for command in example.commands:
        succeed("onmt_entmax", *shlex.split(command)[1:])
    page = (example.folder / "dev.html").read_text(encoding="utf-8")
    assert sources_on(page) == read_lines(example.folder / "dev.src")
