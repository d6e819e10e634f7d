"""Serve a web page to try a model: type a word or a sentence, see its outputs and what is proven.

    onmt-entmax serve                          # the pretrained model of 86 languages
    onmt-entmax serve run/mt/mine/de-en --open

The page answers as you type. Its address has the query, and you may write one, such as
http://127.0.0.1:8000/?language=spanish&lemma=preferir&tags=V;SBJV;PST;3;SG or ?sentence=Hallo.

It shows the outputs with their probabilities, the certificate, the lattice of all outputs and
the attention. A model of inflection gets language, word and tags; every other model a sentence,
which goes through the subword transforms of its training (-transforms names others).

Only this machine reaches the page, unless --host names an address that others can reach. Nothing
that is typed is kept. Ctrl-C ends the command.
"""

import argparse
import ipaddress
import logging
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import waitress
from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest, HTTPException

from onmt_entmax.checkpoint import load, read_cells
from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.cli.report import picture
from onmt_entmax.errors import UserError
from onmt_entmax.files.released import pretrained
from onmt_entmax.inflector import (
    Inflection,
    Inflector,
    Inventory,
    Question,
)
from onmt_entmax.paradigm import as_record, cells_of, parts_of_speech
from onmt_entmax.report.page import live_page, to_json
from onmt_entmax.rules import whole
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.task import INFLECTION, Query, split_tags
from onmt_entmax.strings.units import decode_word
from onmt_entmax.transducer import described, letter_warnings
from onmt_entmax.translator import Translator

LONGEST = {
    "language": 100,
    "lemma": 80,  # the longest words of dictionaries have about 60
    "tags": 500,
    "pos": 100,
    "sentence": 2000,
}  # characters of a field
_LARGEST = 1 << 15  # bytes of a request
# Idle connections, as browsers and scanners keep them, must not keep others out.
SERVER = {
    "max_request_body_size": _LARGEST,
    "connection_limit": 1000,
    "channel_timeout": 10,  # seconds
    "cleanup_interval": 5,
    "asyncore_use_poll": True,  # select() fails at descriptors above 1023
    "channel_request_lookahead": 1,  # notices clients that leave before their answer
}
_TOGETHER = 64  # cells of a paradigm that are searched in one batch, between which others may ask
_EXAMPLES = (("turkish", "kitap", "N;ACC;SG"), ("english", "draw", "V;V.PTCP;PST"))
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class LeftError(Exception):
    """The client has closed its connection, so nobody reads the answer."""


def _stays() -> bool:
    """Whether a client has left that nobody can ask about: never."""
    return False


class Answering:
    """Answers the queries of the page with one model, one at a time.

    Args:
        folder: run or model folder.
        task: what to search for, and how.
        transforms: OpenNMT-py's transforms of a sentence; None: the subword transforms of training.

    Raises:
        UserError: the folder cannot be read, or a transform cannot be made.
    """

    def __init__(
        self, folder: Path, task: SearchTask, transforms: Sequence[str] | None = None
    ) -> None:
        model = load(folder)
        self._inventory = Inventory.of([model.vocabularies.source])
        self._inflects = bool(self._inventory.languages)
        self._translator = Translator([model], task, transforms, attention=True)
        self._cells: Cells = {}
        if self._inflects:
            self._inflector = Inflector([model], 0, 10, budget=0)
            self._cells = read_cells(model.folder)
        self._lock = threading.Lock()

    def description(self) -> dict[str, Any]:
        """Return what the page needs to know of the model."""
        inventory, example = self._inventory, {}
        for language, lemma, tags in _EXAMPLES:
            if language in inventory.languages and {*tags.split(";")} <= {*inventory.tags}:
                example = {"language": language, "lemma": lemma, "tags": tags}
                break
        return {
            "languages": inventory.languages if self._inflects else None,
            "tags": inventory.tags,
            "pos": {language: parts_of_speech(self._cells, language) for language in self._cells},
            "example": example,
            "longest": LONGEST,
        }

    def answer(self, query: object, left: Callable[[], bool] = _stays) -> dict[str, Any]:
        """Return a query's record (as `Answer.record`), drawing and tags.

        Of a query with a part of speech, return the paradigm, as `onmt-entmax paradigm` has it.

        Args:
            query: `language`, `lemma` and `tags` or `pos`, or `sentence`, as the page sends them.
            left: whether the client has gone.

        Raises:
            UserError: it is not such a query, or cannot be answered.
            LeftError: the client has gone.
        """
        if not isinstance(query, Mapping):
            raise UserError("a query is an object")
        tags: tuple[str, ...] = ()
        if self._inflects and query.get("pos"):
            return self._paradigm(query, left)
        if self._inflects:
            given = split_tags(_text(query, "tags"))
            asked = Question(_text(query, "language"), _text(query, "lemma").strip(), given)
            tags = self._inventory.checked(asked).tags
            query_of = Query(asked.lemma, tags, asked.language)
            line = " ".join(INFLECTION.encode_source(query_of))
        else:
            line = _text(query, "sentence")
        with self._turn(left):
            return {**self._answer(line), "tags": tags}

    @contextmanager
    def _turn(self, left: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other query is answered.

        Raises:
            LeftError: the client has gone meanwhile.
        """
        with self._lock:
            if left():
                raise LeftError
            yield

    def _paradigm(self, query: Mapping[str, Any], left: Callable[[], bool]) -> dict[str, Any]:
        language, lemma = _text(query, "language"), _text(query, "lemma").strip()
        cells = cells_of(self._cells, language, _text(query, "pos"))
        questions = [Question(language, lemma, tags) for tags in cells]
        self._inventory.checked(questions[0])
        answers: list[Inflection] = []
        for start in range(0, len(questions), _TOGETHER):
            with self._turn(left):
                together = questions[start : start + _TOGETHER]
                answers += self._inflector.answers(together, _TOGETHER)
        return as_record(answers)

    def _answer(self, line: str) -> dict[str, Any]:
        translator = self._translator
        try:
            (answer,) = translator.answers([line])
        except UserError as error:
            raise UserError(str(error).removeprefix("line 1: ")) from None
        if answer.result is None:
            raise UserError("the sentence is empty")
        source = translator.reader.encode(translator.reader.preprocess(line)[0])
        outputs = [each.hypothesis.tokens for each in answer.hypotheses]
        drawn = picture(translator, source, outputs)[1] if outputs else None
        record = answer.record()
        if self._inflects:
            for each in record["hypotheses"]:
                each["text"] = decode_word(each["text"].split())
            for name in {"unknown", "unseen"} & record.keys():
                counts = record[name].items()
                record[name] = {described(token): count for token, count in counts}
            asked = INFLECTION.decode_source(line.split())
            texts = [each["text"] for each in record["hypotheses"]]
            strange = bool({"unknown", "unseen"} & record.keys())
            sources = [translator.vocabularies.source]
            record["warnings"] = letter_warnings(
                asked, texts, sources, strange, INFLECTION, ("lemma", "form")
            )
        return {"record": record, "drawing": drawn}


def _text(query: Mapping[str, Any], name: str) -> str:
    """Return a field of a query.

    Raises:
        UserError: it is missing, too long or no text.
    """
    text = query.get(name)
    if not isinstance(text, str) or any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"{name}: expected a text")
    if len(text) > LONGEST[name]:
        raise UserError(f"{name}: longer than {LONGEST[name]:,} characters")
    return text


def application(answering: Answering, title: str, local: bool) -> Flask:
    """Return the web application.

    Args:
        answering: answers the queries.
        title: of the page.
        local: whether to answer only requests to names of this machine; otherwise a page of the
            web could use the model under a name that leads here (DNS rebinding).
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = _LARGEST
    parts = live_page(title, answering.description())
    kinds = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

    @app.before_request
    def check_host() -> None:
        if local and not is_loopback(_host_name(request.headers.get("Host", ""))):
            raise BadRequest("this page is only for names of its own machine")

    @app.after_request
    def protect(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.get("/", defaults={"name": ""})
    @app.get("/<any('page.css', 'page.js'):name>")
    def part(name: str) -> Response:
        return Response(parts[name], mimetype=kinds[name])

    @app.post("/answer")
    def answer() -> Response:
        try:
            query = request.get_json()  # pages of other sites cannot send JSON unasked
        except RecursionError:
            raise BadRequest("the query is nested too deeply") from None
        left = request.environ.get("waitress.client_disconnected", _stays)
        return Response(to_json(answering.answer(query, left)), mimetype="application/json")

    @app.errorhandler(LeftError)
    def leave(error: LeftError) -> Response:
        return Response(status=499)  # nobody reads it

    @app.errorhandler(UserError)
    def refuse(error: UserError) -> tuple[dict[str, str], int]:
        return {"error": str(error)}, 400

    @app.errorhandler(HTTPException)
    def fail(error: HTTPException) -> tuple[dict[str, str], int]:
        return {"error": str(error.description)}, error.code or 500

    return app


def _host_name(header: str) -> str:
    """Return the name in a Host header; empty if it has none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address means this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add(
        "model", type=Path, nargs="?", metavar="MODEL",
        help="run or model folder (default: the pretrained model)",
    )  # fmt: skip
    add("--port", type=whole(0, 65535), default=8000, help="0: any (default 8000)")
    add("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add("--open", action="store_true", help="open the page in the browser")
    add(
        "--search", choices=("beam", "exact"), default="exact",
        help="exact: also prove the listed outputs to be the most probable (default)",
    )  # fmt: skip
    add(
        "--n_best", type=whole(1, 200), default=10,
        help="outputs to list, and beam size (default 10)",
    )  # fmt: skip
    add(
        "--budget", type=whole(1, 10**6), default=2000,
        help="decoder steps of an exact search (default 2000)",
    )  # fmt: skip
    add(
        "-transforms",
        "--transforms",
        nargs="*",
        help="transforms of a sentence, instead of training's subwords",
    )
    return parser.parse_args(arguments)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        UserError: the address is taken, or is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        # Python adds the address to some messages, in brackets.
        reason = str(getattr(error, "strerror", None) or error).split(" (")[0]
        raise UserError(f"{host}, port {port}: {reason}; choose another --port or --host") from None


def main(arguments: Sequence[str]) -> int:
    """Serve the page until an interrupt, the only end there is; return the exit status.

    Raises:
        UserError: the model cannot be read, or the address cannot be used.
    """
    options = parse_arguments(arguments)
    path = options.model or pretrained()
    bound = listening(options.host, options.port)
    where = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{where}:{bound.getsockname()[1]}"
    config = SearchConfig(beam_size=options.n_best, n_best=options.n_best)
    task = SearchTask(config, options.search, Budget(expansions=options.budget))
    answering = Answering(path, task, options.transforms)
    local = is_loopback(options.host)
    name = str(options.model or path.name)
    app = application(answering, f"{name}: outputs and proofs", local)
    # Requests may wait: the model answers one at a time.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = waitress.create_server(app, sockets=[bound], **SERVER)
    if not local:
        warn(f"whoever reaches {address} can use the page: it asks for no password")
    print(f"{address}  (Ctrl-C ends)", flush=True)
    if options.open:
        webbrowser.open(address)
    server.run()  # returns at an interrupt
    return 0
