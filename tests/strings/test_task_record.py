"""The record of a task in `train.yaml`: what is read, what is written, and what is refused."""

import pytest

from onmt_entmax.strings.task import LEFT_TO_RIGHT, RIGHT_TO_LEFT, StringTask, TaskError
from onmt_entmax.strings.task_record import recorded_task, task_record
from onmt_entmax.strings.units import CHARACTERS, Unit


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"column": []}, "'column': no such key", id="unknown key"),
        pytest.param(
            {"columns": "source"}, "columns: must be a list", id="columns that are a text"
        ),
        pytest.param({"columns": ["source", 1]}, "columns: must be a list", id="a number"),
        pytest.param({"heading": "form"}, "heading: must be a list", id="heading that is a text"),
        pytest.param({"heading": ["form"]}, "heading: 1 cell, but 3 columns", id="short heading"),
        pytest.param({"separators": ["-"]}, "separators: must map columns", id="a list"),
        pytest.param({"separators": []}, "separators: must map columns", id="an empty list"),
        pytest.param({"separators": ""}, "separators: must map columns", id="an empty text"),
        pytest.param({"separators": 0}, "separators: must map columns", id="zero"),
        pytest.param({"separators": {"language": "-"}}, "'language' is none of", id="language"),
        pytest.param({"separators": {"tags": 1}}, "tags: must be a text, not 1", id="no text"),
        pytest.param({"separators": {"target": "\t"}}, "target: must not be a tab", id="tab"),
        pytest.param({"separators": {"target": "\n"}}, "or a line break", id="line break"),
        pytest.param({"separators": {"tags": ""}}, "tags: must not be empty", id="empty for tags"),
        pytest.param(["source"], "task: must be a mapping", id="no mapping"),
    ],
)
def test_a_record_with_a_mistake_is_refused(content: object, message: str) -> None:
    if isinstance(content, dict):
        content = {"columns": ["source", "target", "tags"]} | content
    with pytest.raises(TaskError, match=message):
        recorded_task({"task": content}, languages=False)


def test_a_separator_makes_the_units_of_its_column_symbols() -> None:
    content = {"columns": ["source", "target"], "separators": {"target": " "}}
    task = recorded_task({"task": content}, languages=False)
    assert (task.source, task.target) == (CHARACTERS, Unit.between(" "))


def test_without_separators_all_units_are_characters() -> None:
    """YAML reads `separators:` without a value as None."""
    content = {"columns": ["source", "target"], "separators": None}
    task = recorded_task({"task": content}, languages=False)
    assert (task.source, task.target) == (CHARACTERS, CHARACTERS)


@pytest.mark.parametrize(
    "task",
    [
        StringTask(),
        StringTask(("source", "-", "target"), target=Unit.between(" ")),
        StringTask(("tags", "source", "target"), source=Unit.between("_"), tag_separator=","),
        StringTask(heading=("form", "lemma")),
    ],
    ids=["characters", "phones", "tags", "heading"],
)
def test_a_recorded_task_is_read_as_it_was(task: StringTask) -> None:
    assert recorded_task({"task": task_record(task)}, languages=False) == task


@pytest.mark.parametrize(
    ("order", "right_to_left"), [(LEFT_TO_RIGHT, False), (RIGHT_TO_LEFT, True)]
)
def test_target_order_is_the_direction(order: str, right_to_left: bool) -> None:
    task = recorded_task({"target_order": order}, languages=True)
    assert task.right_to_left is right_to_left


@pytest.mark.parametrize(("frequency", "copies"), [(0, False), (2, True)])
def test_a_task_copies_if_it_has_a_copy_frequency(frequency: int, copies: bool) -> None:
    task = recorded_task({"copy_frequency": frequency}, languages=True)
    assert task.copies is copies


@pytest.mark.parametrize("languages", [False, True])
def test_the_caller_says_whether_sources_have_languages(languages: bool) -> None:
    assert recorded_task({}, languages=languages).languages is languages
