"""`translate` under lexical constraints and regular expressions, and their bad input.

All outputs of the model can be enumerated. Those that must be found under a constraint are those
of them that satisfy it.
"""

import io
import json
import re
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax import SearchTask, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.cli.translate import main
from onmt_entmax.errors import UserError
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import LineConstraints, SearchConfig
from tests.commands import json_lines
from tests.reversing_model import (
    FOLDER,
    load_without_warning,
    with_smaller_scores,
    writing_right_to_left,
)

# Of the model that reverses its source: the best output for `a b c` is `c b a`.
SOURCES = ["a b c", "f e d", "b b a"]


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    """The model with smaller scores: 12, 44 and 1,181 outputs of the sources are possible."""
    return with_smaller_scores(load_without_warning())


def enumerator(model: LoadedModel, **changes: object) -> Translator:
    """Return a translator that finds every possible output; `n_best` 0 is no limit."""
    return Translator([model], SearchTask(SearchConfig(n_best=0), method="enumerate", **changes))


def probabilities_of(answer: Answer) -> dict[str, float]:
    """Return the outputs of a line with their probabilities."""
    return {output.text: output.hypothesis.prob for output in answer.hypotheses}


@pytest.fixture(scope="module")
def all_outputs(model: LoadedModel) -> list[dict[str, float]]:
    """The outputs of each source without a constraint, with their probabilities."""
    answers = list(enumerator(model).answers(SOURCES))
    assert all(answer.result.certificate.level == "exhaustive" for answer in answers)
    return [probabilities_of(answer) for answer in answers]


# --- lines with constraints ------------------------------------------------------------------

# Constraints, and a regular expression of Python that the same outputs match.
CONSTRAINTS = {
    "a phrase": (LineConstraints(required=(("c b",),)), r".*c b.*"),
    "one of two": (LineConstraints(required=(("d", "c"),)), r".*[cd].*"),
    "without a token": (LineConstraints(avoid=("b",)), r"[^b]*"),
    "two groups, without a token": (
        LineConstraints(required=(("a",), ("b", "e")), avoid=("c",)),
        r"(?=.*a)(?=.*[be])[^c]*",
    ),
    "an expression": (LineConstraints(regex=". . [a d]"), r"\S \S [ad]"),
    "a token and an expression": (
        LineConstraints(required=(("a",),), regex=".* b .*"),
        r"(?=.*a).*b.*",
    ),
}


class Constrained(NamedTuple):
    """An answer under a constraint, and the outputs that satisfy it with their probabilities."""

    answer: Answer
    expected: dict[str, float]


@pytest.fixture(scope="module", params=CONSTRAINTS)
def constrained(
    request: pytest.FixtureRequest, model: LoadedModel, all_outputs: list[dict[str, float]]
) -> list[Constrained]:
    """Answers of the first and the last source; the source between them has no constraint."""
    constraint, pattern = CONSTRAINTS[request.param]
    constraints = [constraint, LineConstraints(), constraint]
    answers = enumerator(model).answers(SOURCES, constraints=constraints)
    satisfying = [
        {text: prob for text, prob in outputs.items() if re.fullmatch(pattern, text)}
        for outputs in all_outputs
    ]
    first, _, last = map(Constrained, answers, satisfying)
    assert 0 < len(first.expected) < len(all_outputs[0])
    assert 0 < len(last.expected) < len(all_outputs[2])
    return [first, last]


def test_every_output_that_satisfies_a_constraint_is_found_with_its_probability(
    constrained: list[Constrained],
) -> None:
    for answer, expected in constrained:
        assert probabilities_of(answer) == pytest.approx(expected)


def test_the_certificate_has_the_probability_of_satisfying_a_constraint(
    constrained: list[Constrained],
) -> None:
    for answer, expected in constrained:
        least, most = answer.result.certificate.satisfied
        assert least == most == pytest.approx(sum(expected.values()), abs=1e-6)


def test_the_record_has_the_probability_of_satisfying_a_constraint(
    constrained: list[Constrained],
) -> None:
    for answer, _ in constrained:
        assert answer_record(answer)["satisfied"] == [*answer.result.certificate.satisfied]


@pytest.fixture(scope="module")
def unconstrained(model: LoadedModel) -> Answer:
    """The answer of a line without a constraint, between lines with one."""
    constraint = LineConstraints(avoid=("b",))
    constraints = [constraint, LineConstraints(), constraint]
    _, answer, _ = enumerator(model).answers(SOURCES, constraints=constraints)
    return answer


def test_a_line_without_a_constraint_has_all_outputs(
    unconstrained: Answer, all_outputs: list[dict[str, float]]
) -> None:
    assert probabilities_of(unconstrained) == pytest.approx(all_outputs[1])


def test_the_certificate_of_a_line_without_a_constraint_says_nothing_of_constraints(
    unconstrained: Answer,
) -> None:
    assert unconstrained.result.certificate.satisfied is None


# --- an expression for all lines -------------------------------------------------------------


@pytest.fixture(scope="module")
def without_e(model: LoadedModel) -> list[Answer]:
    """Answers under an expression without e; the constraint of the second requires an e."""
    constraints = [LineConstraints(), LineConstraints(required=(("e",),)), LineConstraints()]
    return list(enumerator(model, regex="[^e]*").answers(SOURCES, constraints=constraints))


@pytest.mark.parametrize("line", [0, 2])
def test_an_expression_of_the_task_is_for_all_lines(without_e: list[Answer], line: int) -> None:
    texts = [output.text for output in without_e[line].hypotheses]
    assert texts
    assert not any("e" in text for text in texts)


def test_an_expression_of_the_task_joins_those_of_lines(without_e: list[Answer]) -> None:
    """A contradiction is proven to have no output."""
    contradiction = without_e[1]
    assert not contradiction.hypotheses
    assert contradiction.result.certificate.level == "exhaustive"
    assert contradiction.result.certificate.satisfied == (0.0, 0.0)


# --- a model that writes from right to left --------------------------------------------------


@pytest.fixture(scope="module")
def backwards() -> Translator:
    """The model as one that writes its output from the end: its only one for `a b c` is `a b c`."""
    return Translator([writing_right_to_left(load_without_warning())], SearchTask())


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param(LineConstraints(), id="none"),
        pytest.param(LineConstraints(required=(("a b",),)), id="a phrase"),
        pytest.param(LineConstraints(regex="a .*"), id="an expression"),
    ],
)
def test_a_model_that_writes_from_right_to_left_reads_constraints_from_left_to_right(
    backwards: Translator, constraint: LineConstraints
) -> None:
    (answer,) = backwards.answers(["a b c"], constraints=[constraint])
    assert answer.hypotheses[0].text == "a b c"


def test_an_expression_is_not_that_of_the_reversed_output(backwards: Translator) -> None:
    (answer,) = backwards.answers(["a b c"], constraints=[LineConstraints(regex="c .*")])
    assert not answer.hypotheses
    assert answer.result.certificate.satisfied == (0.0, 0.0)


# --- the command -----------------------------------------------------------------------------


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
    | b b a | Q, which is no token of the model | a phrase |
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


def test_the_summary_has_the_mean_probability_of_satisfying(
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
