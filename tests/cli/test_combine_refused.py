"""`onmt-entmax combine`: reports and weights that are refused."""

from pathlib import Path

import pytest

from onmt_entmax.cli import combine as command
from tests.cli.tables import write_table
from tests.in_process import refusal
from tests.reports import record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("", "the following arguments are required: --reports", id="no reports"),
        pytest.param(
            "--reports one two", "one: 1 sentence, but another report has more", id="lengths"
        ),
        pytest.param("--reports one other", "other:1: another source than in", id="sources"),
        pytest.param(
            "--reports broken", "broken:1: not a record of an -exactness_report", id="no record"
        ),
        pytest.param("--reports none", "cannot be read", id="no file"),
        pytest.param(
            "--reports one one --weights 1", "--weights has 1 number for 2 reports", id="weights"
        ),
        pytest.param(
            "--reports one one --weights nan 1", "--weights must be positive numbers", id="nan"
        ),
        pytest.param(
            "--reports one one --weights 1 0", "leave out this report and its weight", id="zero"
        ),
        pytest.param(
            "--reports one --reports one --weights 1e308 1e308", "a float can hold", id="infinity"
        ),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    line = record("x", "exhaustive", ("a", 1.0))
    write_table(tmp_path / "one", line)
    write_table(tmp_path / "two", line, line)
    write_table(tmp_path / "other", record("y", "exhaustive", ("a", 1.0)))
    write_table(tmp_path / "broken", '{"id": 0}')
    assert message in refusal(command.main, [*arguments.split(), "--output", "output"])
    assert not Path("output").exists()
