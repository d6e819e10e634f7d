"""`onmt-entmax serve`: a query waits for the search of another, but not for a whole paradigm."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.errors import UserError
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.report.writers import Answer
from onmt_entmax.translator import Translator
from tests.cli.serving import TASK, VERB, WORD, copy_with_verb_cells


def test_the_model_answers_one_query_at_a_time(
    inflection_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching: list[str] = []  # the lines that are searched at this moment
    together: list[int] = []  # how many these were at the end of each search
    answers = Translator.answers

    def slow_answers(translator: Translator, lines: Sequence[str]) -> Iterator[Answer]:
        searching.extend(lines)
        time.sleep(0.02)  # in which another thread would begin, if it could
        results = list(answers(translator, lines))
        together.append(len(searching))
        searching.pop()
        return iter(results)

    monkeypatch.setattr(Translator, "answers", slow_answers)
    answering = Answering(inflection_model, TASK)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(answering.answer, [WORD] * 6))
    assert together == [1] * 6


# --- paradigms ---


CELLS = 150  # of a paradigm
BATCHES = [64, 64, 22]  # the cells of each; 64 is the most


@pytest.fixture
def batch_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all batches that inflectors search."""
    sizes: list[int] = []
    answers = Inflector.answers

    def counted_answers(
        inflector: Inflector, questions: Sequence[Question], batch_size: int
    ) -> Iterator[Inflection]:
        sizes.append(min(len(questions), batch_size))
        return answers(inflector, questions, batch_size)

    monkeypatch.setattr(Inflector, "answers", counted_answers)
    return sizes


def test_a_large_paradigm_is_searched_in_batches(
    inflection_model: Path, tmp_path: Path, batch_sizes: list[int]
) -> None:
    model = copy_with_verb_cells(inflection_model, tmp_path / "model", CELLS)
    (section,) = Answering(model, TASK).answer(VERB)["sections"]
    assert len(section["cells"]) == CELLS
    assert batch_sizes == BATCHES


def test_a_paradigm_without_a_lemma_is_refused_before_any_search(
    inflection_model: Path, tmp_path: Path, batch_sizes: list[int]
) -> None:
    answering = Answering(copy_with_verb_cells(inflection_model, tmp_path / "model", 2), TASK)
    with pytest.raises(UserError, match=r"^the lemma is empty$"):
        answering.answer(VERB | {"source": " "})
    assert batch_sizes == []


def test_the_lock_is_released_between_the_batches_of_a_paradigm(
    inflection_model: Path,
    tmp_path: Path,
    batch_sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So other queries can be answered between the batches."""
    searches_at_events: list[tuple[str, int]] = []  # how many batches were searched by then

    class RecordedLock:
        def __enter__(self) -> None:
            searches_at_events.append(("taken", len(batch_sizes)))

        def __exit__(self, *_: object) -> None:
            searches_at_events.append(("released", len(batch_sizes)))

    answering = Answering(copy_with_verb_cells(inflection_model, tmp_path / "model", CELLS), TASK)
    monkeypatch.setattr(answering, "_lock", RecordedLock())
    answering.answer(VERB)
    assert searches_at_events == [
        ("taken", 0),
        ("released", 1),
        ("taken", 1),
        ("released", 2),
        ("taken", 2),
        ("released", 3),
    ]
