"""`onmt-entmax suggest` and `onmt_entmax.suggest`: against the model's own distributions."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import load, save
from onmt_entmax.cli import suggest
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model
from onmt_entmax.suggester import TextSuggestion
from onmt_entmax.suggester import suggest as suggestions
from tests.in_process import exit_status, refusal
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of("ab", "xyz")


def write_model(folder: Path, alpha: float = 1.5, options: dict[str, object] | None = None) -> Path:
    """Write a random model; return its folder."""
    torch.manual_seed(2)
    config = small(generator_alpha=alpha, param_init=0.7)
    model = build_model(config, VOCABULARIES)
    with torch.no_grad():
        # No string has them, so that no probability is lost.
        model.generator.bias[[VOCABULARIES.target.pad, VOCABULARIES.target.bos]] = -100.0
    save(folder, model, config, VOCABULARIES, options or {})
    return folder


def next_tokens(folder: Path, source: str, prefix: str) -> dict[str, float]:
    """Return probabilities after a prefix, by teacher forcing as in training."""
    loaded = load(folder)
    ids = VOCABULARIES.target.encode(prefix.split())
    batch = make_batch([Example(VOCABULARIES.source.encode(source.split()), ids, 0)], VOCABULARIES)
    with torch.no_grad():
        hidden, _ = loaded.model.hidden_states(batch)
        probabilities = loaded.model.generator.log_probs(hidden)[-1].exp().tolist()
    named = zip(VOCABULARIES.target.tokens, probabilities, strict=True)
    # A softmax gives padding and start symbol, which no string has, next to nothing.
    return {token: p for token, p in named if p > 0 and token not in ("<blank>", "<s>")}


@pytest.mark.parametrize(("prefix", "alpha"), [("", 1.5), ("x y z", 1.0)])
def test_every_possible_next_token_and_no_other_is_listed(
    tmp_path: Path, prefix: str, alpha: float
) -> None:
    folder = write_model(tmp_path / "model", alpha=alpha)
    continuations = suggestions(load(folder), "a b a", prefix).continuations
    listed = {continuation.token: continuation.prob for continuation in continuations}
    assert listed == pytest.approx(next_tokens(folder, "a b a", prefix), abs=1e-6)


# --- the text of suggestions ---


@pytest.fixture
def suggestion(tmp_path: Path) -> TextSuggestion:
    """What may follow the prefix `x`, which is said to be impossible."""
    suggestion = suggestions(load(write_model(tmp_path / "model", alpha=1.0)), "a b a", "x")
    return replace(suggestion, excluded_at=0)


@pytest.fixture
def lines(suggestion: TextSuggestion) -> list[str]:
    """The text with a single next token."""
    return suggest.text_of(suggestion, ["x"], 1).splitlines()


def test_the_token_that_the_model_excludes_is_named(lines: list[str]) -> None:
    assert lines[0] == "the model excludes 'x' (token 1 of the prefix)"


def test_the_most_probable_token_is_listed(lines: list[str], suggestion: TextSuggestion) -> None:
    first, *_ = suggestion.continuations
    assert lines[1] == f"next      {first.prob:<8.6g}  {first.token}"


def test_the_other_tokens_are_summed(lines: list[str], suggestion: TextSuggestion) -> None:
    _, *others = suggestion.continuations
    rest = sum(continuation.prob for continuation in others)
    assert lines[2] == f"          {rest:<8.6g}  on {len(others)} more"


def test_a_right_to_left_model_reads_prefixes_from_right_to_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_model(tmp_path / "model", options={"target_order": "right_to_left"})
    assert exit_status(suggest.main, [str(folder), "--source", "a", "--prefix", "x"]) == 0
    assert "from right to left, and so are prefixes read" in capsys.readouterr().err


# --- typed sources and prefixes ---

PREFIXES = "x\n\nö\ny\n"  # the second is empty, the third impossible


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def type_lines(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the standard input have a text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_source_in_the_arguments_and_one_on_the_first_line_are_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_lines(monkeypatch, PREFIXES)
    assert exit_status(suggest.main, [str(folder), "--source", "a b"]) == 0
    with_argument = capsys.readouterr().out
    type_lines(monkeypatch, f"\na b\n{PREFIXES}")
    assert exit_status(suggest.main, [str(folder)]) == 0
    assert capsys.readouterr().out == with_argument


def test_prefixes_may_follow_one_that_is_not_possible(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The three others, among them the empty one, have suggestions."""
    type_lines(monkeypatch, PREFIXES)
    assert exit_status(suggest.main, [str(folder), "--source", "a b"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "suggest.py: 'ö' is not in the target vocabulary\n"
    assert printed.out.count("forced") == 3


def test_nothing_need_be_typed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    type_lines(monkeypatch, "")
    assert exit_status(suggest.main, [str(folder)]) == 0


# --- refusals ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["model", "--source", " ", "--prefix", "x"], "the source is blank", id="blank source"
        ),
        pytest.param(
            ["model", "--source", "a", "--prefix", "x ö"],
            "'ö' is not in the target",
            id="unknown token",
        ),
        pytest.param(
            ["nowhere", "--source", "a", "--prefix", "x"],
            "nowhere: no such model folder",
            id="no model",
        ),
        pytest.param(["model", "--prefix", "x"], "--prefix needs --source", id="no source"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_model(tmp_path / "model")
    assert message in refusal(suggest.main, [tmp_path / arguments[0], *arguments[1:]])
