"""`onmt-entmax combine`: models averaged by the strings they found."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli import combine
from onmt_entmax.report.reading import read_report
from tests.commands import succeed
from tests.in_process import exit_status, refusal
from tests.reports import record


def run(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(combine.main, [str(argument) for argument in arguments]) == 0


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def average(folder: Path, *lines: str) -> dict[str, Any]:
    """Return the record of the average of reports of one line each."""
    paths = [write(folder / f"{number}.jsonl", line) for number, line in enumerate(lines, 1)]
    report = folder / "r.jsonl"
    run("--reports", *paths, "--output", folder / "o", "--report", report)
    (record,) = read_report(report)
    return record


class Average(NamedTuple):
    """The average of a left-to-right and a right-to-left model for three sources, x, y and z."""

    reports: list[Path]
    output: str
    records: list[dict[str, Any]]
    summary: dict[str, Any]
    printed: str


@pytest.fixture
def directions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Average:
    """Reports have their texts in natural order, whichever way their models write."""
    forward = write(
        tmp_path / "forward.jsonl",
        record("x", "exhaustive", ("a b", 0.6), ("a c", 0.4)),
        record("y", "exhaustive", ("d", 1.0)),
        record("z", "optimal", ("e f", 0.5), ("f", 0.2), bound=0.1),
    )
    backward = write(
        tmp_path / "backward.jsonl",
        record("x", "exhaustive", ("a c", 0.9), ("b", 0.1)),
        record("y", "exhaustive", ("d", 1.0)),
        record("z", "none", ("f", 0.4), bound=0.45),
    )
    output, report = tmp_path / "both.pred", tmp_path / "both.jsonl"
    run("--reports", forward, backward, "--output", output, "--report", report)
    summary = json.loads((tmp_path / "both.jsonl.summary.json").read_text())
    records = list(read_report(report))
    return Average(
        [forward, backward], output.read_text(), records, summary, capsys.readouterr().out
    )


def test_the_output_is_the_most_probable_of_the_average(directions: Average) -> None:
    assert directions.output == "a c\nd\nf\n"


def test_probabilities_of_equal_texts_are_averaged(directions: Average) -> None:
    hypotheses = directions.records[0]["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == ["a c", "a b", "b"]
    probs = [hypothesis["prob"] for hypothesis in hypotheses]
    assert probs == pytest.approx([(0.4 + 0.9) / 2, 0.6 / 2, 0.1 / 2])


def test_an_average_of_exhaustive_reports_is_exhaustive(directions: Average) -> None:
    first, second, _ = directions.records
    assert (first["certificate"], first["proven"], first["bound"]) == ("exhaustive", 3, 0.0)
    assert (second["certificate"], second["finished"], second["gap"]) == ("exhaustive", 1, None)


def test_a_text_that_a_report_lacks_may_have_its_bound(directions: Average) -> None:
    """`e f` may have 0.45 with the second model: more than `f` has."""
    third = directions.records[2]
    assert third["certificate"] == "none"
    assert third["bound"] == pytest.approx((0.1 + 0.45) / 2)
    assert third["gap"] == pytest.approx(math.log((0.2 + 0.4) / (0.5 + 0.45)))


def test_the_summary_names_the_reports(directions: Average) -> None:
    assert directions.summary["sentences"] == 3
    assert directions.summary["reports"] == [str(report) for report in directions.reports]


def test_rates_of_certificates_are_printed(directions: Average) -> None:
    _, exhaustive, proven, only_one, *_ = directions.printed.splitlines()
    rates = [line.split()[-2] for line in (exhaustive, proven, only_one)]
    assert rates == ["66.67", "66.67", "33.33"]


def test_with_nine_tenths_of_the_weight_the_first_model_decides(
    directions: Average, tmp_path: Path
) -> None:
    output = tmp_path / "weighted"
    run("--reports", *directions.reports, "--weights", 9, 1, "--output", output)
    assert output.read_text() == "a b\nd\ne f\n"


def test_a_string_that_finished_and_is_not_listed_is_not_taken_for_impossible(
    tmp_path: Path,
) -> None:
    cut = record("x", "exhaustive", ("a", 0.6), mass=1.0, finished=2)  # -n_best 1
    other = record("x", "exhaustive", ("b", 0.7), ("a", 0.3))
    found = average(tmp_path, cut, other)
    # `b` may have 0.4 with the first and then 0.55 in all, more than the 0.45 of `a`.
    assert (found["certificate"], found["finished"]) == ("none", 2)
    assert found["gap"] == pytest.approx(math.log(0.45 / 0.55), abs=1e-4)


def test_a_mixture_is_known_up_to_its_slack(tmp_path: Path) -> None:
    """`y` has 0.45 in the end and `x` 0.425: the first report does not say that of `y`."""
    one = record("s", "optimal", ("x", 0.5), bound=0.5)
    two = record("s", "exhaustive", ("y", 0.5), ("z", 0.5))
    three = record("s", "exhaustive", ("x", 0.6), ("y", 0.4))
    both = average(tmp_path, one, two)
    assert both["slack"] == both["bound"] == 0.25
    found = average(tmp_path, json.dumps(both), three)
    assert (found["certificate"], found["proven"]) == ("none", 0)
    listed = {h["text"]: h["prob"] for h in found["hypotheses"]}
    for text, truth in {"x": 0.425, "y": 0.45, "z": 0.125}.items():
        assert listed[text] <= truth <= listed[text] + found["slack"] + 1e-12


def test_a_text_that_one_report_lacks_may_have_its_slack(tmp_path: Path) -> None:
    """`a b` may have 0.25 in the first report, from several token sequences of at most 0.1."""
    cut = record("s", "optimal", ("x", 0.6), ("y", 0.15), bound=0.1, slack=0.25)
    found = average(tmp_path, cut, record("s", "exhaustive", ("a b", 0.8), ("x", 0.2)))
    # `x` has 0.4 to 0.525, `a b` 0.4 to 0.525 too: nothing is proven.
    assert found["bound"] == found["slack"] == pytest.approx(0.125)
    assert (found["certificate"], found["proven"]) == ("none", 0)
    assert found["gap"] == pytest.approx(math.log(0.4 / 0.525))


# Of two strings that a search finished, `-n_best 1` listed one, with a sum of 1.
LISTED_IN_PART = record("x", "exhaustive", ("a", 1.0), mass=1.0, finished=2)


def test_an_unlisted_string_may_be_as_improbable_as_rounding(tmp_path: Path) -> None:
    found = average(tmp_path, LISTED_IN_PART, record("x", "exhaustive", ("a", 1.0)))
    assert found["certificate"] == "optimal"
    assert found["bound"] == pytest.approx(0.5e-5)


def test_a_report_that_lists_some_outputs_is_not_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, LISTED_IN_PART)["certificate"] == "optimal"


BEST = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unseen={"t": 1})
SOME = record("s t", "exhaustive", ("a", 1.0), source_tokens=2, unknown={"s": 1})
WORST = record(
    "s t", "exhaustive", ("a", 1.0), source_tokens=3, unknown={"s": 1, "t": 2}, unseen={"s": 1}
)


@pytest.mark.parametrize(
    "reports",
    [(BEST, SOME, WORST), (WORST, SOME, BEST), (SOME, WORST, BEST)],
    ids=["worst last", "worst first", "worst between"],
)
def test_an_average_has_the_unknown_tokens_of_the_worst_model(
    tmp_path: Path, reports: tuple[str, ...]
) -> None:
    found = average(tmp_path, *reports)
    assert (found["source_tokens"], found["unknown"]) == (3, {"s": 1, "t": 2})
    assert found["unseen"] == {"s": 1}
    summary = json.loads((tmp_path / "r.jsonl.summary.json").read_text())
    assert (summary["source_tokens"], summary["unknown_tokens"]) == (3, 3)


SURE = record("s", "exhaustive", ("a", 1.0))


@pytest.mark.parametrize("level", ["optimal", "none"])
def test_an_average_with_a_report_that_is_not_exhaustive_is_not(tmp_path: Path, level: str) -> None:
    """A bound that a float cannot hold is not 0."""
    found = average(tmp_path, SURE, record("s", level, ("a", 1.0), bound=0.0))
    assert found["certificate"] == "optimal"
    assert 0 < found["bound"] < 1e-300


def test_an_average_of_a_report_with_itself_is_exhaustive(tmp_path: Path) -> None:
    assert average(tmp_path, SURE, SURE)["certificate"] == "exhaustive"


def test_excluded_probability_is_averaged_by_weight(tmp_path: Path) -> None:
    one = write(tmp_path / "one", record("s", "exhaustive", ("a", 0.6), excluded=0.4))
    two = write(tmp_path / "two", record("s", "exhaustive", ("a", 1.0)))
    files = ("--reports", one, two, "--output", tmp_path / "o", "--report", tmp_path / "r")
    run(*files, "--weights", 3, 1)
    (found,) = read_report(tmp_path / "r")
    assert found["excluded"] == pytest.approx(0.3)
    assert found["hypotheses"][0]["prob"] == pytest.approx(0.7)


@pytest.mark.parametrize("bound", [0.25, 0.1])
def test_a_text_that_other_tokens_become_too(tmp_path: Path, bound: float) -> None:
    """What the first report does not list, 0.25, may all be `a b`, in strings of 0.1 each."""
    cut = record("s", "optimal", ("x", 0.4), ("a b", 0.35), bound=bound, slack=0.25)
    found = average(tmp_path, cut)
    assert (found["certificate"], found["gap"]) == ("none", pytest.approx(math.log(0.4 / 0.6)))


def test_a_text_that_is_listed_twice_has_the_probability_of_both(tmp_path: Path) -> None:
    found = average(tmp_path, record("s", "exhaustive", ("a", 0.4), ("b", 0.3), ("b", 0.3)))
    assert [(h["text"], h["prob"]) for h in found["hypotheses"]] == [("b", 0.6), ("a", 0.4)]
    assert found["mass"] == pytest.approx(1)


def test_one_string_has_not_all_the_probability_where_some_was_excluded(tmp_path: Path) -> None:
    average(tmp_path, record("s", "exhaustive", ("a", 0.7), excluded=0.3))
    summary = json.loads((tmp_path / "r.jsonl.summary.json").read_text())
    assert (summary["exhaustive_percent"], summary["single_hypothesis_percent"]) == (100, 0)


class TestMinimumBayesRisk:
    """The middle of three outputs wins, which no model says is the most probable."""

    @pytest.fixture
    def printed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        """Choose by edit distance; what is printed. The report is `both`, the output `o`."""
        first = record("s", "exhaustive", ("a b c d", 0.8), ("a b c e", 0.2))
        second = record("s", "optimal", ("a x c e", 0.6), ("a b c e", 0.39), bound=0.01)
        reports = [write(tmp_path / "1", first), write(tmp_path / "2", second)]
        files = ("--reports", *reports, "--output", tmp_path / "o", "--report", tmp_path / "both")
        run(*files, "--mbr", "edit_distance")
        return capsys.readouterr().out

    @pytest.fixture
    def found(self, printed: str, tmp_path: Path) -> dict[str, Any]:
        """The record of the average."""
        content: dict[str, Any] = json.loads((tmp_path / "both").read_text())
        return content

    @pytest.mark.usefixtures("printed")
    def test_chooses_the_output(self, tmp_path: Path) -> None:
        assert (tmp_path / "o").read_text() == "a b c e\n"

    def test_leaves_the_order_of_the_hypotheses(self, found: dict[str, Any]) -> None:
        assert found["hypotheses"][0]["text"] == "a b c d"

    def test_has_the_expected_utility(self, found: dict[str, Any]) -> None:
        best = found["mbr"]["ranking"][0]
        assert best["expected_utility"] == pytest.approx(0.295 + 0.7 * 0.75)

    def test_is_proven_in_spite_of_its_slack(self, found: dict[str, Any]) -> None:
        """The second model did not list all outputs."""
        assert found["mbr"]["slack"] == pytest.approx(0.005 + 1e-5)
        assert found["mbr"]["certificate"] == "proven"

    def test_is_counted(self, printed: str, tmp_path: Path) -> None:
        summary = json.loads((tmp_path / "both.summary.json").read_text())
        assert summary["mbr"]["proven"] == 1
        assert "minimum Bayes risk proven                   100.00 %" in printed


class TestAModelWithItself:
    """The real commands; a search lists five outputs, of some sources not all."""

    @pytest.fixture(scope="class")
    def files(self, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A folder with output and report of the model, and of its average with itself."""
        folder = tmp_path_factory.mktemp("itself")
        lines = [" ".join(letters) for letters in product("abc", "bde", "afc")]
        (folder / "src").write_text("\n".join([*lines, "", "a"]) + "\n")  # with a blank line
        succeed(
            "translate.py", "-model", trained / "run", "-src", folder / "src",
            "-output", folder / "pred", "-beam_size", 5, "-n_best", 5,
            "-exactness_report", folder / "report",
        )  # fmt: skip
        reports = ["--reports", folder / "report", folder / "report"]
        written = ["--output", folder / "again.pred", "--report", folder / "again"]
        succeed("onmt_entmax", "combine", *reports, *written)
        return folder

    @pytest.fixture
    def pairs(self, files: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The records of the model, and of the average."""
        return list(zip(read_report(files / "report"), read_report(files / "again"), strict=True))

    def test_has_the_same_output(self, files: Path) -> None:
        best = (files / "pred").read_text().splitlines()[::5]
        assert (files / "again.pred").read_text().splitlines() == best

    @pytest.mark.parametrize("key", ["text", "prob"])
    def test_has_the_same_hypotheses(
        self, pairs: list[tuple[dict[str, Any], dict[str, Any]]], key: str
    ) -> None:
        assert any(len(before["hypotheses"]) > 1 for before, _ in pairs)
        for before, after in pairs:
            assert [h[key] for h in after["hypotheses"]] == [h[key] for h in before["hypotheses"]]

    def test_has_the_same_certificate_if_all_outputs_are_listed(
        self, pairs: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        listed = [pair for pair in pairs if pair[0]["finished"] <= 5]
        assert listed
        for before, after in listed:
            assert after["certificate"] == before["certificate"]

    def test_is_exhaustive_only_if_the_model_is(
        self, pairs: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        for before, after in pairs:
            assert after["certificate"] != "exhaustive" or before["certificate"] == "exhaustive"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the following arguments are required: --reports"),
        ("--reports one two", "one: 1 sentence, but another report has more"),
        ("--reports one other", "other:1: another source than in"),
        ("--reports broken", "broken:1: not a record of an -exactness_report"),
        ("--reports none", "cannot be read"),
        ("--reports one one --weights 1", "--weights has 1 number for 2 reports"),
        ("--reports one one --weights nan 1", "--weights must be positive numbers"),
        ("--reports one --reports one --weights 1e308 1e308", "a float can hold"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    line = record("x", "exhaustive", ("a", 1.0))
    write(tmp_path / "one", line)
    write(tmp_path / "two", line, line)
    write(tmp_path / "other", record("y", "exhaustive", ("a", 1.0)))
    write(tmp_path / "broken", '{"id": 0}')
    assert message in refusal(combine.main, [*arguments.split(), "--output", "output"])
    assert not Path("output").exists()
