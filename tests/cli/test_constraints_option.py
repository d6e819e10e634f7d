"""`translate -constraints` and `-constraint_regex`: outputs, reports, and bad input."""

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli.translate import main
from onmt_entmax.errors import UserError
from tests.commands import json_lines
from tests.reversing_model import FOLDER

# The model reverses its source: its best output for `a b c` is `c b a`.
SOURCES = ["a b c", "f e d", "b b a"]


def command(folder: Path, constraints: str, *options: str) -> list[str]:
    """Write sources and constraints; return the arguments of `translate`."""
    (folder / "in").write_text("".join(f"{source}\n" for source in SOURCES))
    (folder / "constraints").write_text(constraints)
    arguments = ["-model", FOLDER, "-src", folder / "in", "-constraints", folder / "constraints"]
    arguments += ["-output", folder / "out", "-exactness_report", folder / "report"]
    return [*map(str, arguments), *options]


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the outputs of three lines, each with constraints.

    | source | constraints | as |
    |---|---|---|
    | a b c | `b a` or `c a` | JSON |
    | f e d | d, and e | phrases between tabs |
    | b b a | Q, which the model lacks | a phrase |
    """
    folder = tmp_path_factory.mktemp("translated")
    lines = '{"text": "a b c", "constraints": [["b a", "c a"]]}\nd\te\nQ\n'
    with (
        pytest.warns(UserWarning, match="constraints of line 3: no output has 'Q', which"),
        redirect_stderr(io.StringIO()) as printed,
    ):
        assert main(command(folder, lines, "-constraint_regex", "[^<unk>]*")) == 0
    assert printed.getvalue() == ""
    return folder


def test_outputs_satisfy_the_constraints_of_a_file(translated: Path) -> None:
    """The reversed sources do; a line without an output is empty."""
    assert (translated / "out").read_text().splitlines() == ["c b a", "d e f", ""]


def test_a_record_proves_that_a_constraint_cannot_be_met(translated: Path) -> None:
    record = json_lines(translated / "report")[2]
    assert record["certificate"] == "exhaustive"
    assert record["satisfied"] == [0.0, 0.0]


@pytest.fixture
def summary(translated: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((translated / "report.summary.json").read_text())
    return content


def test_the_summary_counts_lines_with_constraints(summary: dict[str, Any]) -> None:
    assert summary["constrained"] == 3


def test_the_summary_counts_constraints_that_cannot_be_met(summary: dict[str, Any]) -> None:
    assert summary["impossible"] == 1


def test_the_summary_has_the_mean_probability_of_satisfying_the_constraints(
    translated: Path, summary: dict[str, Any]
) -> None:
    """The mean is that of the records, in percent of two digits."""
    records = json_lines(translated / "report")
    bounds = zip(*(record["satisfied"] for record in records), strict=True)
    expected = [100 * sum(bound) / 3 for bound in bounds]
    assert summary["satisfied_percent"] == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        pytest.param("a\nb\n", "constraints: 2 lines, but ", id="too few lines"),
        pytest.param("a\n{\n\n", "constraints: line 2: not valid JSON", id="no JSON"),
        pytest.param(
            'a\n\n{"constraint": []}\n',
            "line 3: unknown key 'constraint'; known are constraints,",
            id="unknown key",
        ),
        pytest.param(
            '{"constraints": "a"}\n\n\n',
            "line 1: constraints must be a list of phrases, not 'a'",
            id="text for a list",
        ),
        pytest.param(
            '{"constraints": [[]]}\n\n\n', "line 1: constraints has an empty list", id="empty list"
        ),
        pytest.param(
            '{"constraints": [["a", 3]]}\n\n\n',
            "line 1: constraints has 3, which is no phrase",
            id="number",
        ),
        pytest.param(
            '\n{"text": "f d"}\n\n', "line 2: text is not the line of the source", id="other source"
        ),
        pytest.param(
            '\n{"regex": "(a"}\n\n',
            "line 2: regex: character 1: '(' is not closed",
            id="regular expression",
        ),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_written(
    tmp_path: Path, lines: str, error: str
) -> None:
    with pytest.raises(UserError) as raised:
        main(command(tmp_path, lines))
    assert error in str(raised.value)
    assert not (tmp_path / "out").exists()
