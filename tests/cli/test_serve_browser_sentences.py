"""The page of a translation model in a browser: the source is a sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from tests.cli.browsed import Page, opened
from tests.cli.serving import TASK, address_of, running_server
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.report.browser import Browser


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of a model without languages, tags or a task of strings."""
    model = write_model(tmp_path / "model", 3, vocabularies_of("ab", "xy"))
    with (
        running_server(Answering(model, TASK)) as server,
        opened(browser, address_of(server)) as page,
    ):
        yield page


def test_the_field_of_a_sentence_is_as_wide_as_the_form(page: Page) -> None:
    field, form = page.value(
        "[at('source'), at('question')].map(e => e.getBoundingClientRect().width)"
    )
    assert field == form


def test_a_typed_sentence_is_answered(page: Page) -> None:
    page.type("source", "a b")
    page.wait_for_title("a b")
