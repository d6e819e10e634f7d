"""`onmt-entmax evaluate` of files of tokens: figures by hand, and what is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli import evaluate
from tests.commands import json_lines
from tests.in_process import exit_status, refusal
from tests.reports import record


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_files(folder: Path, **files: Sequence[str]) -> list[str]:
    """Write the lines of each option's file; return the options with the paths."""
    paths = {name: write_lines(folder / name, lines) for name, lines in files.items()}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


class Evaluation(NamedTuple):
    """What a successful command printed, and what it wrote."""

    printed: str
    content: dict[str, Any]

    def row(self, name: str) -> list[str]:
        """The printed figures of the last line with a name."""
        lines = [line for line in self.printed.splitlines() if line.startswith(f"{name} ")]
        return lines[-1].removeprefix(name).split()


@pytest.fixture
def evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command, with `--json`."""

    def run(arguments: Sequence[str]) -> Evaluation:
        report = tmp_path / "scores" / "scores.json"
        assert exit_status(evaluate.main, [*arguments, "--json", str(report)]) == 0
        return Evaluation(capsys.readouterr().out, json.loads(report.read_text()))

    return run


# --- scores ---


@pytest.fixture
def official(tmp_path: Path, evaluated: Any) -> Evaluation:
    """Four words of two languages: one has a character too many, one has no prediction."""
    arguments = write_files(
        tmp_path,
        source=["lang=english +V a", "lang=english +V b", "lang=english +V c", "lang=german +V a"],
        reference=["a b", "a b c", "a", "b"],
        predictions=["a b x", "", "a", "b"],
    )
    evaluation: Evaluation = evaluated(arguments)
    return evaluation


def test_scores_are_those_of_each_language(official: Evaluation) -> None:
    assert official.content["languages"]["english"] == {
        "words": 3,
        "accuracy": pytest.approx(1 / 3),
        "edit_distance": pytest.approx((1 + 3) / 3),
    }


def test_every_language_counts_the_same_in_the_average(official: Evaluation) -> None:
    assert official.content["average"]["accuracy"] == pytest.approx((1 / 3 + 1) / 2)


def test_the_average_is_printed_last(official: Evaluation) -> None:
    *_, last = official.printed.splitlines()
    assert last.split()[:3] == ["average", "4", "66.67"]


def test_tokens_are_compared_not_words(tmp_path: Path, evaluated: Any) -> None:
    """`ts a` is another output than `t s a`, though it spells the same word."""
    arguments = write_files(
        tmp_path,
        source=["lang=x t s a"] * 2,
        reference=["t s a"] * 2,
        predictions=["ts a", "t s a"],
        against=["t s a", "ts a"],
    )
    evaluation = evaluated(arguments)
    assert evaluation.row("x") == ["1", "1", "1.0000"]
    assert evaluation.content["languages"]["x"]["accuracy"] == 0.5
    assert evaluation.content["languages"]["x"]["edit_distance"] == 1.0
    assert evaluation.row("all") == ["1", "1", "1.0000"]


# --- lists of predictions ---


@pytest.fixture
def list_arguments(tmp_path: Path) -> list[str]:
    """Three words with lists of three predictions, which blank lines fill up."""
    return write_files(
        tmp_path,
        source=["lang=x +V a", "lang=x +V b", "lang=y +V c"],
        reference=["a a", "b", "c"],
        predictions=["a", "a a", "", "x y z", "", "", "c", "d", ""],
    )


def test_lists_have_scores_of_the_first_and_of_the_nearest(
    list_arguments: list[str], evaluated: Any
) -> None:
    evaluation = evaluated([*list_arguments, "--nbest", "3"])
    assert evaluation.row("x") == ["2", "0.00", "2.000", "50.00", "1.500"]
    assert evaluation.row("average") == ["3", "50.00", "1.000", "75.00", "0.750"]
    assert evaluation.content["best of 3"]["languages"]["x"]["accuracy"] == 0.5


def test_lists_of_another_length_are_refused(list_arguments: list[str]) -> None:
    message = refusal(evaluate.main, [*list_arguments, "--nbest", "2"])
    assert "predictions: 9 lines, but" in message


@pytest.fixture
def several_forms(tmp_path: Path, evaluated: Any) -> Evaluation:
    """Two rows have the same source: either of their references is right."""
    arguments = write_files(
        tmp_path,
        source=["lang=x +V a", "lang=x +V a", "lang=x +V b"],
        reference=["a d", "a t", "b d"],
        predictions=["a t", "x y", "a t", "a t", "b t", "b d"],
        against=["a t", "", "a x", "", "b d", ""],
    )
    evaluation: Evaluation = evaluated([*arguments, "--nbest", "2"])
    return evaluation


def test_words_with_several_correct_forms_are_counted(several_forms: Evaluation) -> None:
    assert "\nwords with several correct forms: 2 of 3\n" in several_forms.printed


def test_every_correct_form_of_a_source_is_right(several_forms: Evaluation) -> None:
    average = several_forms.content["average"]
    assert average == {"words": 3, "accuracy": 2 / 3, "edit_distance": 1 / 3}
    assert several_forms.content["best of 2"]["average"]["accuracy"] == 1


def test_every_correct_form_counts_in_comparisons(several_forms: Evaluation) -> None:
    assert several_forms.content["against"]["all"] == {"won": 1, "lost": 1, "p": 1.0}


# --- languages with the names of totals ---


@pytest.fixture(params=["all", "average", "languages"])
def named_like_a_total(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def totals(named_like_a_total: str, tmp_path: Path, evaluated: Any) -> Evaluation:
    """Of such a language the only word is right; of another one, the second prediction of one."""
    arguments = write_files(
        tmp_path,
        source=[f"lang={named_like_a_total} a", "lang=x a", "lang=x b"],
        reference=["a", "a", "b"],
        predictions=["a", "b", "b", "b", "a", "b"],
        against=[""] * 6,
    )
    evaluation: Evaluation = evaluated([*arguments, "--nbest", "2"])
    return evaluation


def test_a_language_named_like_a_total_keeps_its_scores(
    named_like_a_total: str, totals: Evaluation
) -> None:
    scores, _ = totals.printed.split("\n\n")
    _, first, *_, average = scores.splitlines()
    assert first.startswith(named_like_a_total)
    assert first.split()[-5:] == ["1", "100.00", "0.000", "100.00", "0.000"]
    assert average.split() == ["average", "3", "50.00", "0.500", "75.00", "0.250"]


def test_a_language_named_like_a_total_keeps_its_comparison(
    named_like_a_total: str, totals: Evaluation
) -> None:
    language = "all (language)" if named_like_a_total == "all" else named_like_a_total
    _, comparisons = totals.printed.split("\n\n")
    (line,) = [line for line in comparisons.splitlines() if line.startswith(f"{language} ")][:1]
    assert line.removeprefix(language).split()[:2] == ["1", "0"]
    assert comparisons.splitlines()[-1].split()[:3] == ["all", "1", "0"]
    against = totals.content["against"]
    assert against[language]["won"] == against["all"]["won"] == 1


# --- comparisons, and coverage of a report ---


class Compared(NamedTuple):
    """Ten words, of which these predictions have 8 right and the others 3."""

    arguments: list[str]
    predictions: Path
    report: Path
    """Of these predictions: the first five are certain."""


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    sources = ["lang=x +V a"] * 5 + ["lang=y +V a"] * 5
    predictions = ["a"] * 8 + ["b"] * 2
    certain = [
        record(source, "exhaustive", (text, 1.0))
        for source, text in zip(sources[:5], predictions[:5], strict=True)
    ]
    uncertain = [
        record(source, "optimal", (text, 0.6))
        for source, text in zip(sources[5:], predictions[5:], strict=True)
    ]
    arguments = write_files(
        tmp_path,
        source=sources,
        reference=["a"] * 10,
        predictions=predictions,
        against=["a"] * 2 + ["b"] * 7 + ["a"],
        report=certain + uncertain,
    )
    return Compared(arguments, tmp_path / "predictions", tmp_path / "report")


def test_a_comparison_is_the_test_of_mcnemar(compared: Compared, evaluated: Any) -> None:
    """Of all words six are right here alone, one there alone: p = 2 (1 + 7) / 2 ** 7."""
    against = evaluated(compared.arguments).content["against"]
    assert against["all"] == {"won": 6, "lost": 1, "p": 0.125}
    assert against["x"] == {"won": 3, "lost": 0, "p": 0.25}


def test_coverage_is_the_share_and_the_quality_of_each_rule(
    compared: Compared, evaluated: Any
) -> None:
    coverage = evaluated(compared.arguments).content["coverage"]
    kept = {rule["rule"]: (rule["share"], rule["quality"]) for rule in coverage}
    assert kept["all"] == kept["p >= 0.5"] == kept["optimal or more"] == (1.0, 80.0)
    assert kept["p >= 0.7"] == kept["exhaustive"] == kept["only one possible"] == (0.5, 100.0)


def test_coverage_does_not_keep_abstentions(compared: Compared, evaluated: Any) -> None:
    """Here the two wrong words are left out."""
    records = json_lines(compared.report)
    for wrong in records[8:]:
        wrong["abstained"] = True
    write_lines(compared.report, list(map(json.dumps, records)))
    write_lines(compared.predictions, ["a"] * 8 + [""] * 2)
    coverage = evaluated(compared.arguments).content["coverage"]
    assert coverage[0] == {"rule": "all", "share": 0.8, "quality": 100.0}


def test_a_report_that_abstains_from_a_prediction_is_refused(compared: Compared) -> None:
    records = json_lines(compared.report)
    records[9]["abstained"] = True
    write_lines(compared.report, list(map(json.dumps, records)))
    assert "report: not of " in refusal(evaluate.main, compared.arguments)


def test_a_report_in_another_order_is_refused(compared: Compared) -> None:
    records = compared.report.read_text().splitlines()
    write_lines(compared.report, records[::-1])
    assert "report: not of " in refusal(evaluate.main, compared.arguments)


def test_an_empty_report_is_refused(compared: Compared) -> None:
    write_lines(compared.report, [])
    assert "the report is empty" in refusal(evaluate.main, compared.arguments)


# --- errors ---


@pytest.mark.parametrize(
    ("source", "predictions", "message"),
    [
        pytest.param(["lang=x +V a"], ["a", "b"], "2 lines, but", id="too many"),
        pytest.param(
            ["lang=x +V a", "d r a w"],
            ["a", "b"],
            "source:2: expected a language first",
            id="no language",
        ),
        pytest.param(
            ["lang=x +V a"],
            ["x\ta\tV\t1\ta\t1\tonly\t"],
            "predictions:1: expected tokens",
            id="table",
        ),
        pytest.param(["lang=x +V a"], ['{"id": 0}'], "predictions:1: expected tokens", id="report"),
    ],
)
def test_wrong_files_are_refused_and_nothing_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    source: list[str],
    predictions: list[str],
    message: str,
) -> None:
    reference = ["a"] * len(source)
    arguments = write_files(tmp_path, source=source, reference=reference, predictions=predictions)
    report = tmp_path / "report.json"
    assert message in refusal(evaluate.main, [*arguments, "--json", report])
    assert capsys.readouterr().out == ""
    assert not report.exists()
