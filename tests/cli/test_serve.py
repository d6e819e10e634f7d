"""The page of `onmt-entmax serve`: its answers, what it refuses, and the page in a browser."""

import json
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import waitress
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.cli import serve
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.translator import Translator
from tests.commands import CONSOLE, ENVIRONMENT
from tests.inflection_models import write_model
from tests.models import words as words_of
from tests.report.browser import Browser
from tests.string_models import PHONES, task_options, write_phones

TASK = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=8), "exact", Budget(500))
LETTERS = words_of("abé", "xy")
# As training records them: only subword transforms are for decoding.
TRAINED = {
    "transforms": ["filtertoolong", "onmt_tokenize"],
    "src_onmttok_kwargs": "{'mode': 'char'}",
    "tgt_onmttok_kwargs": "{'mode': 'char'}",
}

WORD = {"language": "german", "source": "a", "tags": "V"}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("serve") / "words", 22)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "sentences"
    return write_model(folder, 5, LETTERS, options=TRAINED)


def client(folder: Path, local: bool = True) -> FlaskClient:
    return serve.application(Answering(folder, TASK), "a <title>", local).test_client()


def test_a_word_gets_the_forms_of_inflect_and_their_lattice(words: Path) -> None:
    asked = {"language": "german", "source": " a b ", "tags": "V; PST"}
    answer = client(words).post("/answer", json=asked).get_json()
    record = answer["record"]
    expected = Inflector([words], n_best=4, beam_size=4, max_length=8).inflect(
        "german", "a b", "V;PST"
    )
    assert [each["text"] for each in record["hypotheses"]] == [f.text for f in expected.forms]
    assert record["hypotheses"][0]["prob"] == pytest.approx(expected.forms[0].prob, abs=1e-6)
    assert answer["tags"] == ["V", "PST"]
    assert answer["drawing"]["source"] == ["lang=german", "+V", "+PST", "a", "▁", "b"]
    ends = [b[2] for node in answer["drawing"]["nodes"] for b in node["branches"]
            if b[0] is None and len(b) == 3]  # fmt: skip
    assert sorted(ends) == list(range(len(record["hypotheses"])))


@pytest.mark.usefixtures("pyonmttok")
def test_what_training_never_saw_is_named(words: Path, sentences: Path) -> None:
    asked = {"language": "german", "source": "aö", "tags": "V;FUT"}
    answer = client(words).post("/answer", json=asked).get_json()
    assert answer["record"]["unknown"] == {"tag FUT": 1, "character ö": 1}
    answer = client(sentences).post("/answer", json={"source": "ab e\u0301"}).get_json()
    assert answer["record"]["unknown"] == {"e\u0301": 1}


def test_letters_of_other_scripts_and_normal_forms_are_named(tmp_path: Path) -> None:
    """As `inflect` names them."""
    letters = words_of(("lang=x", "+V", "a", "ä", "б"), "aб")
    answering = Answering(write_model(tmp_path / "model", 4, letters, end=1), TASK)
    inflector = Inflector([tmp_path / "model"], n_best=4, beam_size=4, max_length=8)
    warned = 0
    for lemma in ("a", "aб", "a\u0308", "б"):
        record = answering.answer({"language": "x", "source": lemma, "tags": "V"})["record"]
        expected = inflector.inflect("x", lemma, "V").warnings
        texts = {each["text"] for each in record["hypotheses"]}
        assert record["warnings"] == [text for text in expected if "unknown" not in text]
        assert texts
        warned += len(record["warnings"])
    assert warned > 3


@pytest.mark.usefixtures("pyonmttok")
def test_a_sentence_goes_through_the_subwords_of_training(sentences: Path) -> None:
    answer = client(sentences).post("/answer", json={"source": "ab ba"}).get_json()
    assert answer["drawing"]["source"] == ["a", "b", "b", "a"]
    translator = Translator.from_folders(
        [sentences], TASK, transforms=["onmt_tokenize"], attention=True
    )
    (expected,) = translator.answers(["ab ba"])
    assert answer["record"] == expected.record()


def test_the_model_answers_one_query_at_a_time(words: Path, monkeypatch) -> None:
    answering = Answering(words, TASK)
    inside: list[int] = []
    most = []

    def slow(line: str) -> dict[str, Any]:
        inside.append(1)
        time.sleep(0.02)
        most.append(len(inside))
        inside.pop()
        return {}

    monkeypatch.setattr(answering, "_answer", slow)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(answering.answer, [WORD] * 6))
    assert most == [1] * 6


class Batches:
    """Answers of an inflector, which are counted, and wait until they may go on."""

    def __init__(self, answering: Answering) -> None:
        self.sizes: list[int] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._answers = answering._inflector.answers

    def answers(self, questions: list[Question], batch_size: int) -> list[Inflection]:
        self.sizes.append(min(len(questions), batch_size))
        assert self.may_go_on.wait(60)
        return list(self._answers(questions, batch_size))


def many_cells(words: Path, cells: int) -> tuple[Answering, Batches]:
    """Return a page's model with so many cells of German verbs, and its counted batches."""
    answering = Answering(words, TASK)
    answering._cells = {"german": {("V", f"T{number}"): 1 for number in range(cells)}}
    batches = Batches(answering)
    answering._inflector = batches
    return answering, batches


VERB = {"language": "german", "source": "a", "pos": "V"}


def test_a_large_paradigm_is_searched_in_batches(words: Path) -> None:
    answering, batches = many_cells(words, 150)
    (section,) = answering.answer(VERB)["sections"]
    assert len(section["cells"]) == 150
    assert batches.sizes == [64, 64, 22]


def test_a_paradigm_without_a_lemma_is_refused(words: Path) -> None:
    answering, batches = many_cells(words, 2)
    with pytest.raises(UserError, match=r"^the lemma is empty$"):
        answering.answer(VERB | {"source": " "})
    assert batches.sizes == []


def test_others_may_ask_between_the_batches(words: Path) -> None:
    answering, _ = many_cells(words, 150)
    free = []
    answering.answer(VERB, lambda: bool(free.append(answering._lock.locked())))
    assert free == [True] * 3  # each batch has a turn of its own
    assert not answering._lock.locked()


def test_a_search_ends_when_its_client_has_left(words: Path) -> None:
    answering, batches = many_cells(words, 640)
    batches.may_go_on.clear()
    app = serve.application(answering, "words", local=True)
    bound = serve.listening("127.0.0.1", 0)
    server = waitress.create_server(app, sockets=[bound], **serve.SERVER)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    body = json.dumps(VERB).encode()
    head = b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(bound.getsockname()) as client:
        client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        while not batches.sizes:
            time.sleep(0.01)
    time.sleep(1)  # until the server has read that it is closed
    batches.may_go_on.set()
    # The model is free for others.
    address = f"http://127.0.0.1:{bound.getsockname()[1]}/answer"
    query = json.dumps({"language": "german", "source": "a", "tags": "V"}).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, query, headers), timeout=60):
        pass
    time.sleep(1)
    server.close()
    assert batches.sizes == [64]


def test_every_response_forbids_other_scripts_and_frames(words: Path) -> None:
    asking = client(words)
    for response in (asking.get("/"), asking.get("/page.js"), asking.post("/answer", data="{")):
        policy = dict(
            rule.strip().split(" ", 1)
            for rule in response.headers["Content-Security-Policy"].split(";")
        )
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"


def test_the_server_itself_bounds_a_request() -> None:
    """Before the application sees it, a body would be kept on the disk."""
    assert serve.SERVER["max_request_body_size"] == 1 << 15


def test_it_listens_on_this_machine_alone_unless_told_otherwise(
    words: Path, monkeypatch, capsys
) -> None:
    addresses = []

    class Server:
        def run(self) -> None:
            pass

    def create(app: object, sockets: list[socket.socket], **_: object) -> Server:
        addresses.append(sockets[0].getsockname()[0])
        sockets[0].close()
        return Server()

    monkeypatch.setattr(waitress, "create_server", create)
    assert serve.main([str(words), "--port", "0"]) == 0
    assert capsys.readouterr().err == ""
    assert serve.main([str(words), "--port", "0", "--host", "0.0.0.0"]) == 0
    assert "can use the page: it asks for no password" in capsys.readouterr().err
    assert addresses == ["127.0.0.1", "0.0.0.0"]


def error(response: Any) -> tuple[int, str]:
    content = response.get_json()
    assert list(content) == ["error"]
    assert "\n" not in content["error"]
    return response.status_code, content["error"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (["german"], "a query is an object"),
        (WORD | {"tags": 3}, "tags: expected a text"),
        (WORD | {"source": 3}, "source: expected a text"),
        (WORD | {"source": "\ud800"}, "source: expected a text"),
        (WORD | {"source": "a" * 81}, "source: longer than 80 characters"),
        (WORD | {"source": "a" * 81, "pos": "V"}, "source: longer than 80 characters"),
        (WORD | {"language": "germann"}, "no language 'germann'; did you mean 'german'?"),
    ],
)
def test_a_query_that_is_none(words: Path, query: object, message: str) -> None:
    status, told = error(client(words).post("/answer", json=query))
    assert (status, message in told) == (400, True), told


def test_a_request_that_is_none(words: Path) -> None:
    asking = client(words)
    assert error(asking.post("/answer", data="{"))[0] == 415  # as another site's form sends it
    assert error(asking.post("/answer", data="{", content_type="application/json"))[0] == 400
    deep = asking.post("/answer", data="[" * 30_000, content_type="application/json")
    assert error(deep) == (400, "the query is nested too deeply")
    assert error(asking.get("/answer"))[0] == 405
    assert error(asking.post("/answer", json={"source": "a" * 40_000}))[0] == 413
    assert error(asking.get("/etc/passwd"))[0] == 404


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_the_page_is_for_names_of_this_machine(words: Path, host: str) -> None:
    asking = client(words)
    response = asking.get("/", headers={"Host": host})
    assert response.status_code == 200
    assert "a &lt;title&gt;" in response.text
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; ")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "192.168.1.2", ""])
def test_a_page_of_the_web_cannot_use_the_model(words: Path, host: str) -> None:
    """Under a name that leads here (DNS rebinding); --host opens the page to others."""
    for asked in ("/", "/page.js", "/answer"):
        refused = client(words).open(asked, headers={"Host": host}, json=WORD, method="POST")
        assert error(refused) == (400, "this page is only for names of its own machine")
    assert client(words, local=False).get("/", headers={"Host": host or "x"}).status_code == 200


def test_idle_connections_keep_nobody_out(words: Path) -> None:
    app = serve.application(Answering(words, TASK), "words", local=True)
    bound = serve.listening("127.0.0.1", 0)
    server = waitress.create_server(app, sockets=[bound], **serve.SERVER)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    with ExitStack() as stack:
        stack.callback(server.close)
        for _ in range(200):
            stack.enter_context(socket.create_connection(bound.getsockname()))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with urllib.request.urlopen(address, timeout=20) as page:
            assert page.status == 200


@pytest.mark.slow
def test_an_interrupt_ends_the_real_command(words: Path) -> None:
    command = [*CONSOLE, "serve", str(words), "--port", "0"]
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    address = process.stdout.readline().split()[0]
    with urllib.request.urlopen(address, timeout=60) as page:
        assert b"outputs and proofs" in page.read()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, "")


# --- in the browser ------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a model; yield the address of its page."""
    app = serve.application(Answering(folder, TASK), "words" * 20, local=True)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def site(words: Path) -> Iterator[str]:
    with served(words) as address:
        yield address


def test_the_page_in_a_browser(browser: Browser, site: str) -> None:
    browser.open(site)
    browser("(model.example = {language: 'english', source: 'b', tags: 'PST'}, follow(), 0)")
    browser.until("at('title')?.textContent === 'b english PST'")
    emptied = "at('tags').value = at('source').value = ''"
    browser(f"({emptied}, at('tags').dispatchEvent(new Event('input')))")
    offered = "[...at('offered').children].map(e => e.value)"
    assert browser(offered) == ["PST", "V"]
    browser("(at('tags').value = 'V;', at('tags').dispatchEvent(new Event('input')))")
    assert browser(offered) == ["V;PST", "V;V"]
    # As one types, with the keyboard alone: an unknown letter.
    browser("(at('language').value = 'german', at('tags').value = 'V', at('source').focus())")
    for key in ("a", "c"):
        browser.press(key)
    browser.until("at('title')?.textContent === 'ac german V'")
    assert browser("location.hash") == "#language=german&source=ac&tags=V"
    warning = browser("document.querySelector('#answer .alarm').textContent")
    assert warning.startswith("1 of 4 source tokens not in the vocabulary.")
    assert warning.endswith("character c")
    shown = "document.querySelectorAll('.lattice g.end').length"
    assert browser(shown) == browser("document.querySelectorAll('#hypotheses li').length") > 0
    # A link asks again; an error takes the place of the answer.
    browser("(location.hash = '#language=english&source=b&tags=V', 0)")
    browser.until("at('title')?.textContent === 'b english V'")
    browser(
        "(at('source').removeAttribute('required'), at('source').value = '', at('ask').click())"
    )
    browser.until("at('state').textContent === 'the lemma is empty'")
    assert browser("at('answer').childNodes.length") == 0
    # An empty field asks nothing, and its answer is none.
    typed = "at('source').dispatchEvent(new Event('input', {bubbles: true}))"
    browser(f"(at('source').required = true, {typed})")
    browser.until("at('state').textContent === ''")
    # Another language has the chosen paradigm, or asks for tags again.
    said = "dispatchEvent(new Event('input'))"
    browser("(model.pos = {english: {V: 2}, german: {V: 3}}, 0)")
    for language, pos in (("english", ""), ("german", "V"), ("x", "")):
        browser(f"(at('language').value = '{language}', at('language').{said})")
        assert browser("[at('pos').value, at('tags').disabled]") == [pos, bool(pos)]
        browser(f"(at('pos').value = 'V', at('pos').{said})")
    noted = [text for text in browser.complaints() if "400" not in str(text)]
    assert noted == []


UNLABELLED = """[...document.querySelectorAll('input, select, textarea, [role=listbox], .scroll')]
    .filter(e => !(e.labels?.[0]?.textContent || e.ariaLabel)).map(e => e.outerHTML)"""
BEYOND = """[...document.querySelectorAll('main *')]
    .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > 391)
    .map(e => e.outerHTML)"""


def check_phone(browser: Browser) -> None:
    """Check that a phone shows everything, and that screen readers name all fields."""
    browser.size(390, 844)
    assert browser("document.documentElement.scrollWidth") == 390
    assert browser(BEYOND) == []
    assert browser(UNLABELLED) == []
    browser.size(1280, 900)


def test_a_page_opens_with_an_answered_example(browser: Browser, tmp_path: Path) -> None:
    """Here a pronunciation in a language of which a word is known."""
    letters = words_of(("lang=turkish", *"kitap"), PHONES)
    options = task_options(("language", "source", "target"), {"target": " "})
    with served(write_model(tmp_path / "model", 3, letters, options=options)) as address:
        browser.open(address)
        browser.until("at('title')?.textContent === 'kitap turkish'")
        assert browser("[...at('question').elements].map(e => e.id)") == [
            "language", "source", "ask",
        ]  # fmt: skip
        # Symbols stand apart, single letters too.
        listed = browser("[...document.querySelectorAll('#hypotheses bdi')].map(e => e.innerHTML)")
        (record,) = [
            Answering(tmp_path / "model", TASK).answer({"language": "turkish", "source": "kitap"})
        ]
        assert listed == [each["text"] for each in record["record"]["hypotheses"]]
        said = browser("at('state').textContent")
        assert said.startswith(f"{listed[0]}, ")
        assert "roven" in said
        check_phone(browser)
        assert browser.complaints() == []


def test_without_an_example_a_page_says_what_to_type(browser: Browser, tmp_path: Path) -> None:
    with served(write_phones(tmp_path / "model", 3)) as address:
        browser.open(address)
        assert browser("at('source').placeholder") == "type a word"
        assert browser("[at('answer').childNodes.length, at('state').textContent]") == [0, ""]
        assert browser("document.activeElement.id") == "source"
        browser.press("a")
        browser.until("at('title')?.textContent === 'a'")
        browser("(location.hash = '#lemma=b', 0)")  # as links of earlier versions
        browser.until("at('title')?.textContent === 'b'")
        check_phone(browser)
        assert browser.complaints() == []


def test_a_paradigm_leads_to_its_cells(browser: Browser, words: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(words, folder)
    cells = {"german": {("V",): 2, ("V", "PST"): 1}}
    (folder / CELLS).write_text(cells_text(cells), encoding="utf-8")
    write_list(folder)
    with served(folder) as address:
        browser.open(address)
        browser("(location.hash = '#language=german&source=ab&pos=V', 0)")
        browser.until("document.querySelectorAll('.paradigm td a').length === 2")
        check_phone(browser)
        browser("document.querySelector('.paradigm td a').click()")
        browser.until("/^ab german V/.test(at('title')?.textContent)")
        assert browser("[at('pos').value, at('tags').disabled]") == ["", False]
        check_phone(browser)
        assert browser.complaints() == []
