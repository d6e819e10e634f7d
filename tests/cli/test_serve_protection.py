"""The web application of `onmt-entmax serve`: protection from pages of other sites.

A page that is open in the same browser may send it requests, too: by its address, or by a name of
the page's own site that leads there.
"""

from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from tests.cli.serving import WORD, error_of, page_client


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


FOREIGN_HOSTS = ("evil.example", "localhost.evil.example:80", "192.168.1.2")


@pytest.mark.parametrize("path", ["/", "/page.js", "/answer"])
@pytest.mark.parametrize("host", [*FOREIGN_HOSTS, ""])
def test_a_page_of_the_web_cannot_use_the_model(
    inflection_model: Path, host: str, path: str
) -> None:
    """Its own name may lead here, as by DNS rebinding; an empty one names no site."""
    client = page_client(inflection_model)
    response = client.open(path, headers={"Host": host}, json=WORD, method="POST")
    assert error_of(response) == (400, "this page is only for names of its own machine")


@pytest.mark.parametrize("host", [*FOREIGN_HOSTS, "x"])
def test_a_server_for_other_machines_answers_under_any_name(
    inflection_model: Path, host: str
) -> None:
    client = page_client(inflection_model, local=False)
    assert client.get("/", headers={"Host": host}).status_code == 200
