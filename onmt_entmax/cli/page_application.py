"""The web application of `serve`, which has these addresses:

GET /, /page.css, /page.js    the page, its style and its script
POST /answer                  takes a query as JSON, and returns its answer

An error is JSON, too: {"error": text}.
"""

import ipaddress
from urllib.parse import urlsplit

from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest, HTTPException

from onmt_entmax.answering import Answering, ClientGoneError, never_gone
from onmt_entmax.errors import UserError
from onmt_entmax.report.live_page import live_page
from onmt_entmax.report.page_parts import to_json

LARGEST_REQUEST = 1 << 15
"""Bytes of a request, at most; a query is a word or a sentence"""
_CLIENT_LEFT = 499  # nginx logs this status for a client that has left; nobody reads it
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def application(answering: Answering, title: str, *, local: bool) -> Flask:
    """Return the web application.

    Args:
        answering: answers the queries.
        title: title of the page.
        local: whether to answer only requests that name this machine, such as `localhost`. This
            stops pages of other sites whose names lead to this machine (DNS rebinding).
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    parts = live_page(title, answering.description())
    types = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

    @app.before_request
    def check_host() -> None:
        if local and not is_loopback(_host_name(request.headers.get("Host", ""))):
            raise BadRequest("this page is only for names of its own machine")

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.get("/", defaults={"name": ""})
    @app.get("/<any('page.css', 'page.js'):name>")
    def page_part(name: str) -> Response:
        return Response(parts[name], mimetype=types[name])

    @app.post("/answer")
    def answer() -> Response:
        try:
            query = request.get_json()  # pages of other sites cannot send JSON unasked
        except RecursionError:
            raise BadRequest("the query is nested too deeply") from None
        is_gone = request.environ.get("waitress.client_disconnected", never_gone)
        return Response(to_json(answering.answer(query, is_gone)), mimetype="application/json")

    @app.errorhandler(ClientGoneError)
    def client_gone(error: ClientGoneError) -> Response:
        return Response(status=_CLIENT_LEFT)

    @app.errorhandler(UserError)
    def user_error(error: UserError) -> tuple[dict[str, str], int]:
        return {"error": str(error)}, 400

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> tuple[dict[str, str], int]:
        return {"error": str(error.description)}, error.code or 500

    return app


def _host_name(header: str) -> str:
    """Return the name in a Host header; empty if it has none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether only this machine itself reaches a name or an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
