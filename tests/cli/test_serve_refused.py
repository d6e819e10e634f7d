"""The web application of `onmt-entmax serve`: queries and requests that it refuses.

Pages of other sites may send requests too: none may use the model.
"""

from pathlib import Path
from typing import Any

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from tests.cli.serving import WORD, page_client

# --- malformed queries and requests ---


def error_of(response: TestResponse) -> tuple[int, str]:
    """Return the status and the message of a response that has nothing but an error."""
    content = response.get_json()
    assert list(content) == ["error"]
    return response.status_code, content["error"]


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


def test_too_much_nesting_is_named(inflection_model: Path) -> None:
    response = page_client(inflection_model).post(
        "/answer", data="[" * 30_000, content_type="application/json"
    )
    assert error_of(response) == (400, "the query is nested too deeply")


# --- protection from other sites ---


class TestEveryResponse:
    @pytest.fixture(params=[("GET", "/"), ("GET", "/page.js"), ("POST", "/answer")])
    def headers(self, request: pytest.FixtureRequest, inflection_model: Path) -> Headers:
        method, path = request.param
        return page_client(inflection_model).open(path, method=method).headers

    @pytest.fixture
    def policy(self, headers: Headers) -> dict[str, str]:
        """The rules of the content security policy, by what they are about."""
        rules = headers["Content-Security-Policy"].split(";")
        return dict(rule.strip().split(" ", 1) for rule in rules)

    @pytest.mark.parametrize("name", ["script-src", "connect-src"])
    def test_allows_only_scripts_and_connections_of_the_page(
        self, policy: dict[str, str], name: str
    ) -> None:
        assert policy[name] == "'self'"

    @pytest.mark.parametrize("name", ["default-src", "frame-ancestors", "base-uri"])
    def test_forbids_frames_and_all_else(self, policy: dict[str, str], name: str) -> None:
        assert policy[name] == "'none'"

    def test_has_the_type_that_it_says(self, headers: Headers) -> None:
        assert headers["X-Content-Type-Options"] == "nosniff"

    def test_is_not_kept_by_the_browser(self, headers: Headers) -> None:
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_names_of_this_machine_lead_to_the_page(inflection_model: Path, host: str) -> None:
    response = page_client(inflection_model).get("/", headers={"Host": host})
    assert response.status_code == 200


def test_the_title_is_a_text(inflection_model: Path) -> None:
    assert "a &lt;title&gt;" in page_client(inflection_model).get("/").text


FOREIGN_HOSTS = ("evil.example", "localhost.evil.example:80", "192.168.1.2")


@pytest.mark.parametrize("path", ["/", "/page.js", "/answer"])
@pytest.mark.parametrize("host", [*FOREIGN_HOSTS, ""])
def test_a_page_of_the_web_cannot_use_the_model(
    inflection_model: Path, host: str, path: str
) -> None:
    """A name that leads here, as by DNS rebinding, does not help it."""
    client = page_client(inflection_model)
    response = client.open(path, headers={"Host": host}, json=WORD, method="POST")
    assert error_of(response) == (400, "this page is only for names of its own machine")


@pytest.mark.parametrize("host", [*FOREIGN_HOSTS, "x"])
def test_a_page_for_others_has_any_name(inflection_model: Path, host: str) -> None:
    client = page_client(inflection_model, local=False)
    assert client.get("/", headers={"Host": host}).status_code == 200
