"""Pages of `onmt-entmax serve` for tests: without a server, and from one of this process."""

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import waitress
from flask.testing import FlaskClient
from waitress.server import TcpWSGIServer
from werkzeug.test import TestResponse

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.cli import serve
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.cells import cells_text

TASK = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=8), "exact", Budget(500))
WORD = {"language": "german", "source": "a", "tags": "V"}  # the query of a word
VERB = {"language": "german", "source": "a", "pos": "V"}  # the query of a paradigm


def page_client(folder: Path, local: bool = True) -> FlaskClient:
    """Return a client that calls the application of a model's page directly."""
    return serve.application(Answering(folder, TASK), "a <title>", local=local).test_client()


def error_of(response: TestResponse) -> tuple[int, str]:
    """Return the status and the message of a response that has nothing but an error."""
    content = response.get_json()
    assert list(content) == ["error"]
    return response.status_code, content["error"]


@contextmanager
def running_server(answering: Answering, title: str = "words") -> Iterator[TcpWSGIServer]:
    """Run the server of the command, on a free port, in a thread of this process."""
    app = serve.application(answering, title, local=True)
    server = waitress.create_server(app, sockets=[serve.listening("127.0.0.1", 0)], **serve.SERVER)
    # `close` does not end the thread while clients keep their connections.
    threading.Thread(target=server.run, daemon=True).start()
    try:
        yield server
    finally:
        server.close()


def address_of(server: TcpWSGIServer) -> str:
    """Return the address of the page of a server."""
    return f"http://127.0.0.1:{server.effective_port}/"


def copy_with_cells(model: Path, copy: Path, cells: Sequence[tuple[str, ...]]) -> Path:
    """Copy a model folder, and record that training saw these cells of German words."""
    shutil.copytree(model, copy)
    counts = {"german": dict.fromkeys(cells, 1)}
    (copy / CELLS).write_text(cells_text(counts), encoding="utf-8")
    write_list(copy)
    return copy


def copy_with_verb_cells(model: Path, copy: Path, count: int) -> Path:
    """Copy a model folder, and record that training saw so many cells of German verbs."""
    return copy_with_cells(model, copy, [("V", f"T{number}") for number in range(count)])
