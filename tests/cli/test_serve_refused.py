"""The web application of `onmt-entmax serve`: queries and requests that it refuses."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.serving import WORD, error_of, page_client


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(["german"], "a query is an object", id="list"),
        pytest.param(WORD | {"tags": 3}, "tags: expected a text", id="number as tags"),
        pytest.param(WORD | {"source": 3}, "source: expected a text", id="number as source"),
        pytest.param(WORD | {"source": "\ud800"}, "source: expected a text", id="no character"),
        pytest.param(
            WORD | {"source": "a" * 81}, "source: longer than 80 characters", id="long source"
        ),
        pytest.param(
            WORD | {"source": "a" * 81, "pos": "V"},
            "source: longer than 80 characters",
            id="long lemma",
        ),
        pytest.param(
            WORD | {"language": "germann"},
            "no language 'germann'; did you mean 'german'?",
            id="misspelt language",
        ),
    ],
)
def test_a_malformed_query_is_refused_in_one_line(
    inflection_model: Path, query: object, message: str
) -> None:
    status, error = error_of(page_client(inflection_model).post("/answer", json=query))
    assert status == 400
    assert message in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("method", "path", "request_body", "status"),
    [
        pytest.param("POST", "/answer", {"data": "{"}, 415, id="the form of another site"),
        pytest.param(
            "POST", "/answer", {"data": "{", "content_type": "application/json"}, 400, id="no JSON"
        ),
        pytest.param(
            "POST",
            "/answer",
            {"data": "[" * 30_000, "content_type": "application/json"},
            400,
            id="nested too deeply",
        ),
        pytest.param("POST", "/answer", {"json": {"source": "a" * 40_000}}, 413, id="too large"),
        pytest.param("GET", "/answer", {}, 405, id="wrong method"),
        pytest.param("GET", "/etc/passwd", {}, 404, id="no such page"),
    ],
)
def test_a_malformed_request_is_refused(
    inflection_model: Path, method: str, path: str, request_body: dict[str, Any], status: int
) -> None:
    response = page_client(inflection_model).open(path, method=method, **request_body)
    assert error_of(response)[0] == status


def test_the_error_of_a_query_that_is_nested_too_deeply_says_so(inflection_model: Path) -> None:
    response = page_client(inflection_model).post(
        "/answer", data="[" * 30_000, content_type="application/json"
    )
    assert error_of(response) == (400, "the query is nested too deeply")
