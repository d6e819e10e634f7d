"""`onmt-entmax combine`, the real command: the average of a model with itself is the model."""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.report.reading import read_report
from tests.cli.combining import Record
from tests.cli.translating import arguments_of
from tests.commands import succeed

N_BEST = 5  # outputs that are listed for each source


class Pair(NamedTuple):
    """The records of a source: of the model, and of the average."""

    before: Record
    after: Record


@pytest.fixture(scope="module")
def files(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with output and report of the model, and of its average with itself.

    A search lists at most `N_BEST` outputs; some sources have more. The last line but one is blank.
    """
    folder = tmp_path_factory.mktemp("itself")
    lines = [" ".join(letters) for letters in product("abc", "bde", "afc")]
    text = "".join(f"{line}\n" for line in (*lines, "", "a"))
    options = ["-beam_size", N_BEST, "-n_best", N_BEST, "-exactness_report", folder / "report"]
    succeed("translate.py", *arguments_of(toy_run, folder, text), *options)
    reports = ["--reports", folder / "report", folder / "report"]
    written = ["--output", folder / "again.out", "--report", folder / "again"]
    succeed("onmt_entmax", "combine", *reports, *written)
    return folder


@pytest.fixture(scope="module")
def pairs(files: Path) -> list[Pair]:
    reports = (read_report(files / name) for name in ("report", "again"))
    return [Pair(*records) for records in zip(*reports, strict=True)]


def test_an_average_with_itself_has_the_same_output(files: Path) -> None:
    best = (files / "out").read_text().splitlines()[::N_BEST]
    assert (files / "again.out").read_text().splitlines() == best


@pytest.mark.parametrize("key", ["text", "prob"])
def test_an_average_with_itself_has_the_same_hypotheses(pairs: list[Pair], key: str) -> None:
    assert any(len(pair.before["hypotheses"]) > 1 for pair in pairs)
    for before, after in pairs:
        expected = [hypothesis[key] for hypothesis in before["hypotheses"]]
        assert [hypothesis[key] for hypothesis in after["hypotheses"]] == expected


def test_the_certificate_stays_the_same_if_all_outputs_are_listed(pairs: list[Pair]) -> None:
    listed = [pair for pair in pairs if pair.before["finished"] <= N_BEST]
    assert listed
    for before, after in listed:
        assert after["certificate"] == before["certificate"]


def test_an_average_is_exhaustive_only_if_the_model_is(pairs: list[Pair]) -> None:
    exhaustive = [pair.before for pair in pairs if pair.after["certificate"] == "exhaustive"]
    assert exhaustive
    assert {record["certificate"] for record in exhaustive} == {"exhaustive"}
