"""`tools.papers.errors search`: errors of a beam search, found by a beam that misses nothing."""

import math
from pathlib import Path

import pytest

from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.in_process import success
from tests.inflection_models import write_model
from tools.papers import errors

ROUNDING = 1e-5  # of log-probabilities in float32

LONGEST = 4  # tokens of an output
ENOUGH = 500  # prefixes of a beam: more than there are outputs
SOURCES = [f"lang=english +V {text}" for text in ("a", "b", "a b", "b a", "a a b", "b b")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("errors") / "model", 3, end=0.5)


def best_log_probs(model: Path, beam_size: int) -> list[float]:
    """Return the log-probability of the best output of each source; -inf if none ended."""
    task = SearchTask(SearchConfig(beam_size=beam_size, max_length=LONGEST))
    answers = Translator.from_folders([model], task).answers(SOURCES)
    return [
        answer.hypotheses[0].hypothesis.log_prob if answer.hypotheses else -math.inf
        for answer in answers
    ]


def search_table(model: Path, folder: Path, beam_size: int) -> str:
    """Return the printed table of a beam."""
    (folder / "src").write_text("".join(f"{line}\n" for line in SOURCES))
    arguments = ["search", model, "--source", folder / "src", "--max_length", LONGEST]
    return success(errors.main, [*arguments, "--beam_size", beam_size])


def test_a_search_error_is_an_output_less_probable_than_another(
    model: Path, tmp_path: Path
) -> None:
    pairs = zip(best_log_probs(model, 1), best_log_probs(model, ENOUGH), strict=True)
    missed = sum(greedy < best - ROUNDING for greedy, best in pairs)
    assert missed > 0
    table = search_table(model, tmp_path, beam_size=1)
    assert f"| missed by the beam | {missed} |" in table
    assert f"| beam 1 | of {len(SOURCES)} |" in table


def test_a_beam_that_holds_all_outputs_misses_none(model: Path, tmp_path: Path) -> None:
    assert "| missed by the beam | 0 |" in search_table(model, tmp_path, ENOUGH)
