"""`translate.py`, end to end: outputs and their report, options of the search, and bad input."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.report.reading import read_report
from onmt_entmax.search import decide
from tests.commands import ROOT, fail, json_lines, succeed, toy_ende

Record = dict[str, Any]


class Translated(NamedTuple):
    """What the command wrote and printed."""

    lines: list[str]
    records: list[Record]
    summary: Record
    printed: str
    folder: Path

    @property
    def best(self) -> list[Record]:
        """The first hypothesis of each record that has one."""
        return [record["hypotheses"][0] for record in self.records if record["hypotheses"]]

    def best_links(self) -> list[tuple[int, int, float]]:
        """Return source, target and weight of the links of the first line's best hypothesis."""
        links: list[tuple[int, int, float]] = self.best[0]["alignment"]["links"]
        return links


def translate(model: Path, folder: Path, text: str, *options: object) -> Translated:
    """Translate a text with an exactness report."""
    (folder / "in").write_text(text)
    output, report = folder / "out", folder / "report.jsonl"
    printed = succeed(
        "translate.py", "-model", model, "-src", folder / "in", "-output", output,
        "-exactness_report", report, *options,
    )  # fmt: skip
    lines = output.read_text().removesuffix("\n").split("\n")
    summary = json.loads((folder / "report.jsonl.summary.json").read_text())
    return Translated(lines, json_lines(report), summary, printed, folder)


@pytest.fixture(scope="module")
def model(trained: Path) -> Path:
    return trained / "run"


@pytest.fixture(scope="module")
def source(trained: Path) -> str:
    """The development text."""
    return (trained / "valid.src").read_text()


# --- outputs and their report ---


@pytest.fixture(scope="module")
def translated(model: Path, source: str, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """The development text, verified, with a wide beam."""
    folder = tmp_path_factory.mktemp("translated")
    return translate(model, folder, source, "-beam_size", 10, "-verify")


def test_most_translations_are_right(translated: Translated, trained: Path) -> None:
    references = (trained / "valid.tgt").read_text().splitlines()
    pairs = zip(translated.lines, references, strict=True)
    assert sum(output == reference for output, reference in pairs) > 0.5 * len(references)


def test_a_record_has_the_line_and_its_output(translated: Translated, source: str) -> None:
    assert [record["source"] for record in translated.records] == source.splitlines()
    assert [best["text"] for best in translated.best] == translated.lines


def test_a_hypothesis_has_its_probability(translated: Translated) -> None:
    for record, best in zip(translated.records, translated.best, strict=True):
        assert best["prob"] == pytest.approx(math.exp(best["log_prob"]))
        assert 0 < best["prob"] <= record["mass"] + 1e-9 <= 1 + 1e-5


def test_only_certificates_prove_hypotheses(translated: Translated) -> None:
    for record, best in zip(translated.records, translated.best, strict=True):
        assert (record["proven"] > 0) == (record["certificate"] != "none")
        if record["certificate"] != "none":
            assert best["prob"] >= record["bound"]


def test_the_gap_is_the_distance_to_the_bound(translated: Translated) -> None:
    """It is infinite, and so null, if nothing was dropped."""
    for record, best in zip(translated.records, translated.best, strict=True):
        assert (record["gap"] is None) == (record["bound"] == 0)
        if record["certificate"] == "optimal":
            gap = best["log_prob"] - math.log(record["bound"])
            assert record["gap"] == pytest.approx(gap)


def test_an_exhaustive_record_leaves_nothing(translated: Translated) -> None:
    exhaustive = [each for each in translated.records if each["certificate"] == "exhaustive"]
    assert exhaustive
    for record in exhaustive:
        assert record["mass"] == pytest.approx(1, abs=1e-5)
        assert record["bound"] == record["dropped"] == record["truncated"] == 0


def test_the_summary_counts_certificates(translated: Translated) -> None:
    counts = Counter(record["certificate"] for record in translated.records)
    levels = ("exhaustive", "optimal", "none")
    assert translated.summary["certificates"] == {level: counts[level] for level in levels}


def test_certified_outputs_are_verified_in_float64(translated: Translated) -> None:
    certified = [each for each in translated.records if each["certificate"] != "none"]
    assert certified
    assert all(record["verified"] for record in certified)
    summary = translated.summary
    assert (summary["verified"], summary["disagreements"]) == (len(certified), 0)


def test_blank_lines_keep_their_place(model: Path, tmp_path: Path) -> None:
    translated = translate(model, tmp_path, "a b c\n\n   \nb a\n", "-n_best", 2)
    assert len(translated.lines) == 4 * 2
    assert translated.lines[2:6] == [""] * 4
    found = [bool(record["hypotheses"]) for record in translated.records]
    assert found == [True, False, False, True]


@pytest.fixture
def with_unknown(model: Path, tmp_path: Path) -> Translated:
    """A text in which two of four tokens are unknown."""
    return translate(model, tmp_path, "a b\nfed x\n")


def test_tokens_that_training_never_saw_are_named(with_unknown: Translated) -> None:
    assert "2 of 4 source tokens (50.00 %), in 1 of 2 lines, not" in with_unknown.printed
    assert "'fed', 'x'" in with_unknown.printed


def test_a_report_counts_unknown_tokens(with_unknown: Translated) -> None:
    unknown = [record.get("unknown") for record in with_unknown.records]
    assert unknown == [None, {"fed": 1, "x": 1}]
    summary = with_unknown.summary
    assert (summary["unknown_tokens"], summary["unknown_percent"]) == (2, 50.0)


class Scored(NamedTuple):
    """Options, and the part of a record with their outputs and scores."""

    options: list[object]
    outputs: str
    score: str


@pytest.mark.parametrize(
    "scored",
    [
        pytest.param(Scored([], "hypotheses", "log_prob"), id="beam"),
        pytest.param(Scored(["-random_sampling_topk", 2], "samples", "log_prob"), id="sampling"),
        pytest.param(Scored(["-length_penalty", "avg"], "hypotheses", "score"), id="penalty"),
    ],
)
def test_scores_behind_the_outputs_are_those_of_the_report(
    model: Path, source: str, tmp_path: Path, scored: Scored
) -> None:
    """A blank line has none."""
    options = ["-with_score", "-n_best", 2, *scored.options]
    translated = translate(model, tmp_path, f"\n{source}", *options)
    assert translated.lines[:2] == ["", ""]
    expected = [
        f"{output['text']}\t{output[scored.score]}"
        for record in translated.records[1:]
        for output in record[scored.outputs][:2]
    ]
    assert [line for line in translated.lines if line] == expected


def test_scores_under_a_penalty_are_no_log_probabilities(
    model: Path, source: str, tmp_path: Path
) -> None:
    translated = translate(model, tmp_path, source, "-length_penalty", "avg")
    assert any(best["score"] != best["log_prob"] for best in translated.best)


# --- exact search and enumeration ---


def test_exact_search_proves_every_output(model: Path, source: str, tmp_path: Path) -> None:
    exact = translate(model, tmp_path, source, "-beam_size", 1, "-search", "exact")
    assert all(record["certificate"] != "none" for record in exact.records)
    narrow = translate(model, tmp_path, source, "-beam_size", 1, "-stop", "first")
    for greedy, best in zip(narrow.best, exact.best, strict=True):
        assert best["prob"] >= greedy["prob"] - 1e-6


def test_enumeration_lists_the_support(model: Path, tmp_path: Path) -> None:
    enumerated = translate(model, tmp_path, "a b c\nd e\n", "-search", "enumerate")
    for record in enumerated.records:
        assert record["certificate"] == "exhaustive"
        assert len(record["hypotheses"]) == record["finished"]
        mass = sum(hypothesis["prob"] for hypothesis in record["hypotheses"])
        assert mass == pytest.approx(1, abs=1e-5)


def test_enumeration_may_end_at_a_mass(model: Path, tmp_path: Path) -> None:
    options = ("-search", "enumerate", "-mass", 0.5)
    enumerated = translate(model, tmp_path, "a b c\nd e\n", *options)
    assert all(record["mass"] >= 0.5 for record in enumerated.records)


# --- requests ---


@pytest.fixture
def prefixes(tmp_path: Path) -> Path:
    """A prefix of the first line's output."""
    path = tmp_path / "prefixes"
    path.write_text("c\n\n")
    return path


def test_outputs_begin_with_their_prefixes(model: Path, prefixes: Path, tmp_path: Path) -> None:
    translated = translate(model, tmp_path, "a b c\nd e\n", "-tgt", prefixes, "-tgt_prefix")
    assert translated.lines[0].startswith("c")


def test_a_target_without_tgt_prefix_is_not_read(
    model: Path, prefixes: Path, tmp_path: Path
) -> None:
    translated = translate(model, tmp_path, "a b c\nd e\n", "-tgt", prefixes)
    assert "tgt (without tgt_prefix; for its prob" in translated.printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Q\n", "prefix of line 1: 'Q' is not in the target vocabulary"),
        ("a\nb\nc\n", "has 1; they must correspond"),
    ],
    ids=["unknown token", "too many"],
)
def test_wrong_prefixes_are_refused(
    model: Path, prefixes: Path, tmp_path: Path, text: str, message: str
) -> None:
    prefixes.write_text(text)
    arguments = arguments_of(model, tmp_path, tgt=prefixes)
    assert message in fail("translate.py", *arguments, "-tgt_prefix")


def test_if_nothing_is_long_enough_everything_is_excluded(model: Path, tmp_path: Path) -> None:
    translated = translate(model, tmp_path, "a b\n", "-min_length", 5, "-beam_size", 20)
    (record,) = translated.records
    assert record["hypotheses"] == []
    assert record["excluded"] == pytest.approx(1, abs=1e-5)


def test_blocked_tokens_do_not_repeat(model: Path, tmp_path: Path) -> None:
    options = ["-block_ngram_repeat", 1, "-ban_unk_token", "-length_penalty", "avg"]
    (record,) = translate(model, tmp_path, "a a b\n", *options).records
    for hypothesis in record["hypotheses"]:
        tokens = hypothesis["text"].split()
        assert len(set(tokens)) == len(tokens)


@pytest.fixture(scope="module", params=["beam", "exact"])
def rewarded(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """Three lines, with a length reward of 0.7."""
    options = ["-beam_size", 4, "-n_best", 3, "-search", request.param, "-verify"]
    options += ["-length_reward", 0.7, "-length_ratio", 1.4]
    return translate(model, tmp_path_factory.mktemp("reward"), "a b c\nd e\na\n", *options)


def test_a_length_reward_counts_tokens_as_the_report_does(rewarded: Translated) -> None:
    """With the end symbol, up to 1.4 times the source's length."""
    for record in rewarded.records:
        for hypothesis in record["hypotheses"]:
            length = len(hypothesis.get("tokens", hypothesis["text"]).split()) + 1
            reward = 0.7 * min(length, 1.4 * record["source_tokens"])
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + reward)


def test_a_length_reward_is_recorded_and_verified(rewarded: Translated) -> None:
    for record in rewarded.records:
        assert record["penalties"]["length_reward"] == 0.7
        assert record["verified"] in (True, None)  # None: nothing is certified


@pytest.mark.parametrize("search", ["beam", "exact"])
def test_a_length_reward_of_0_changes_nothing(model: Path, tmp_path: Path, search: str) -> None:
    options = ["-beam_size", 4, "-n_best", 3, "-search", search, "-verify"]
    plain = translate(model, tmp_path, "a b c\nd e\na\n", *options)
    zero = translate(model, tmp_path, "a b c\nd e\na\n", *options, "-length_reward", 0)
    assert zero.records == plain.records


# --- minimum Bayes risk, samples, alignments, abstention ---


@pytest.fixture(scope="module", params=["beam", "enumerate"])
def decided(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """Two lines and a blank one between them, by minimum Bayes risk."""
    options = ["-mbr", "edit_distance", "-search", request.param, "-n_best", 2]
    return translate(model, tmp_path_factory.mktemp("mbr"), "a b c\n\nd e\n", *options)


def test_the_outputs_are_those_of_minimum_bayes_risk(decided: Translated) -> None:
    """All that the search found are candidates."""
    assert len(decided.lines) == 6
    for place in (0, 2):
        record = decided.records[place]
        assert len(record["hypotheses"]) == record["finished"]
        texts = {hypothesis["text"]: hypothesis["prob"] for hypothesis in record["hypotheses"]}
        decision = decide("edit_distance", texts, record["mbr"]["slack"], 0.0, 0.0)
        ranking = record["mbr"]["ranking"]
        assert [each["text"] for each in ranking] == list(decision.texts)
        assert [each["expected_utility"] for each in ranking] == list(decision.expected)
        assert record["mbr"]["certificate"] == decision.level
        assert decided.lines[2 * place : 2 * place + 2] == [*decision.texts, "", ""][:2]


def test_a_decision_is_exact_if_the_search_is_exhaustive(decided: Translated) -> None:
    for record in (decided.records[0], decided.records[2]):
        is_exhaustive = record["certificate"] == "exhaustive"
        assert (record["mbr"]["certificate"] == "exact") == is_exhaustive


def test_a_blank_line_needs_no_decision(decided: Translated) -> None:
    assert "mbr" not in decided.records[1]
    assert sum(decided.summary["mbr"].values()) == 2


SAMPLING = ["-random_sampling_topk", -1, "-n_best", 3, "-seed", 3]


@pytest.fixture(scope="module")
def sampled(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Three samples of two lines, a blank one between them."""
    folder = tmp_path_factory.mktemp("sampled")
    return translate(model, folder, "a b c\n\nd e\n", *SAMPLING, "-random_sampling_temp", 2)


def test_samples_are_written_and_reported(sampled: Translated) -> None:
    first, blank, last = (
        [sample["text"] for sample in record["samples"]] for record in sampled.records
    )
    assert (len(first), len(blank), len(last)) == (3, 0, 3)
    assert sampled.lines == [*first, "", "", "", *last]
    assert all(0 < one["prob"] <= 1 for record in sampled.records for one in record["samples"])


def test_the_summary_has_the_settings_of_sampling(sampled: Translated) -> None:
    summary = sampled.summary
    assert (summary["sentences"], summary["blank_lines"], summary["samples"]) == (2, 1, 6)
    settings = {"topk": -1, "topp": 0.0, "temp": 2.0, "distinct": False, "seed": 3}
    assert (summary["search"], summary["sampling"]) == ("sampling", settings)


def test_a_report_of_samples_has_no_certificates_to_read(sampled: Translated) -> None:
    with pytest.raises(UserError, match="1: a record of samples, which have no certificate"):
        next(read_report(sampled.folder / "report.jsonl"))


def test_distinct_samples_do_not_repeat(model: Path, tmp_path: Path) -> None:
    (record,) = translate(model, tmp_path, "d e\n", *SAMPLING, "-random_sampling_distinct").records
    texts = [sample["text"] for sample in record["samples"]]
    assert len(set(texts)) == len(texts)


@pytest.fixture(scope="module")
def aligned(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Two lines and a blank one between them, with their alignments."""
    options = ["-n_best", 2, "-beam_size", 4, "-report_align"]
    return translate(model, tmp_path_factory.mktemp("aligned"), "a b c\n\nd e\n", *options)


def test_alignments_are_written_beside_the_outputs(aligned: Translated) -> None:
    """Each target token has a link."""
    lines = (aligned.folder / "out.align").read_text().splitlines()
    assert len(lines) == 6
    assert lines[2:4] == ["", ""]
    for line, text in zip(lines, aligned.lines, strict=True):
        links = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        assert {target for _, target in links} == set(range(len(text.split())))


def test_the_report_has_the_alignments_that_were_written(aligned: Translated) -> None:
    first, *_ = (aligned.folder / "out.align").read_text().splitlines()
    links = sorted(aligned.best_links())
    assert first == " ".join(f"{source}-{target}" for source, target, _ in links)


def test_weights_of_a_target_token_sum_to_1(aligned: Translated) -> None:
    sums: Counter[int] = Counter()
    for _, target, weight in aligned.best_links():
        assert weight > 0
        sums[target] += weight
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-5)


class Abstained(NamedTuple):
    """A least probability below which ten outputs are left out."""

    least: float
    translated: Translated


@pytest.fixture(scope="module")
def abstained(model: Path, source: str, tmp_path_factory: pytest.TempPathFactory) -> Abstained:
    """The development text and a blank line."""
    folder = tmp_path_factory.mktemp("abstained")
    probs = sorted(best["prob"] for best in translate(model, folder, source).best)
    least = (probs[9] + probs[10]) / 2
    options = ("-abstain", least, "-report_align")
    return Abstained(least, translate(model, folder, f"{source}\n", *options))


def test_outputs_below_a_probability_are_left_out(abstained: Abstained) -> None:
    *lines, blank = abstained.translated.lines
    *records, _ = abstained.translated.records
    best = [record["hypotheses"][0] for record in records]
    kept = [each["text"] if each["prob"] >= abstained.least else "" for each in best]
    assert lines == kept
    assert blank == ""


def test_outputs_that_are_left_out_have_no_alignment(abstained: Abstained) -> None:
    alignments = (abstained.translated.folder / "out.align").read_text().splitlines()
    assert [line != "" for line in alignments] == [
        line != "" for line in abstained.translated.lines
    ]


def test_a_report_says_what_was_left_out(abstained: Abstained) -> None:
    *records, blank = abstained.translated.records
    for record in records:
        is_below = record["hypotheses"][0]["prob"] < abstained.least
        assert record.get("abstained", False) == is_below
    assert "abstained" not in blank
    summary = abstained.translated.summary
    assert (summary["abstained"], summary["blank_lines"]) == (10, 1)


def test_bleu_has_the_share_of_the_outputs_that_were_kept(
    abstained: Abstained, trained: Path, tmp_path: Path
) -> None:
    reference = tmp_path / "reference"
    reference.write_text((trained / "valid.tgt").read_text() + "\n")
    folder = abstained.translated.folder
    report = ["--report", folder / "report.jsonl", "--tokenize", "none"]
    printed = succeed("onmt_entmax", "bleu", folder / "out", "--reference", reference, *report)
    share = 1 - 10 / (len(abstained.translated.lines) - 1)
    assert f"{100 * share:.2f} %" in printed.split("all  ")[1].splitlines()[0]


# --- bad input ---


def arguments_of(model: Path, folder: Path, **changes: object) -> list[object]:
    """Write a text of one line; return the arguments that translate it."""
    (folder / "in").write_text("a b\n")
    options = {"model": model, "src": folder / "in", "output": folder / "out"} | changes
    return [word for name, value in options.items() for word in (f"-{name}", value)]


def test_an_ensemble_of_different_vocabularies_is_refused(model: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(model / "step_400", tmp_path / "model"))
    tokens = json.loads((changed / "vocab.json").read_text())
    tokens["target"][-1] = "Q"
    (changed / "vocab.json").write_text(json.dumps(tokens))
    write_list(changed)
    option, first, *others = arguments_of(model, tmp_path)
    message = fail("translate.py", option, first, changed, *others)
    assert "the target vocabulary of model 2 has 'Q', that of model 1 has not" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"a b\n\xff\xfe\n", ":2: not UTF-8 text")],
    ids=["empty", "no text"],
)
def test_a_source_that_is_no_text_is_refused(
    model: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    arguments = arguments_of(model, tmp_path)
    (tmp_path / "in").write_bytes(content)
    assert message in fail("translate.py", *arguments)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a tiny Transformer."""
    folder = tmp_path_factory.mktemp("transformer")
    toy_ende(folder)
    small = ["-enc_layers", 1, "-dec_layers", 1, "-transformer_ff", 8, "-heads", 2]
    sizes = ["-rnn_size", 8, "-word_vec_size", 8, "-batch_size", 64, "-train_steps", 1]
    config = ROOT / "tests" / "stock" / "transformer.yaml"
    succeed("train.py", "-config", config, "-gpu_ranks", *small, *sizes, cwd=folder)
    return folder / "toy-ende" / "run" / "transformer"


@pytest.mark.parametrize("search", ["beam", "enumerate"])
def test_a_line_too_long_for_a_transformer_is_named(
    transformer: Path, tmp_path: Path, search: str
) -> None:
    arguments = arguments_of(transformer, tmp_path)
    (tmp_path / "in").write_text("a b\n" + "a " * 10_000 + "\n")
    message = fail("translate.py", *arguments, "-search", search)
    assert "line 2 (10,000 tokens): is longer than a Transformer" in message


# --- files of outputs ---


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link to a file with an old output."""
    (tmp_path / "linked").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    return tmp_path / "link"


def test_an_output_may_be_a_link_and_a_report_a_device(
    model: Path, link: Path, tmp_path: Path
) -> None:
    arguments = arguments_of(model, tmp_path, output=link)
    succeed("translate.py", *arguments, "-exactness_report", "/dev/stdout")
    assert link.is_symlink()
    assert (tmp_path / "linked").read_text() not in ("", "before")
    assert not Path("/dev/stdout.summary.json").exists()


def test_two_outputs_are_not_one_file(model: Path, link: Path, tmp_path: Path) -> None:
    """One of them through a link."""
    arguments = arguments_of(model, tmp_path, output=link)
    message = fail("translate.py", *arguments, "-exactness_report", tmp_path / "linked")
    assert "is to be written twice" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-output {src}", "src: is read, and would be overwritten"),
        ("-output {o} -exactness_report {src}", "src: is read"),
        ("-output {src} -tgt_subword_model {src} -src {valid}", "is read"),
        ("-output {x}.summary.json -exactness_report {x}", "is to be written twice"),
        (
            "-output {o} -min_length 5 -max_length 3",
            "min_length: is above max_length, 3",
        ),
    ],
)
def test_what_is_refused_changes_no_file(
    trained: Path, model: Path, tmp_path: Path, options: str, message: str
) -> None:
    src = tmp_path / "src"
    src.write_text("a b\n")
    paths = {"src": src, "valid": trained / "valid.src", "o": tmp_path / "o", "x": tmp_path / "x"}
    arguments = options.format(**paths).split()
    assert message in fail("translate.py", "-model", model, "-src", src, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["src"]
    assert src.read_text() == "a b\n"


def test_an_output_whose_summary_cannot_be_written_is_not_written(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.summary.json").mkdir()
    arguments = arguments_of(model, tmp_path)
    fail("translate.py", *arguments, "-exactness_report", tmp_path / "x")
    assert not (tmp_path / "out").exists()
