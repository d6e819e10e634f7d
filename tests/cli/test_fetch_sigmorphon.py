"""`prepare fetch-sigmorphon` against a server on this machine, and against a local folder."""

import functools
import hashlib
import http.server
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.cli import fetch_sigmorphon
from tests.ended import ended, refused


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """Two languages with as many rows as the real files: one in `all`, one in `surprise`."""
    folder = tmp_path_factory.mktemp("repository")
    for place, language in (("all", "norman"), ("surprise", "north-frisian")):
        for part, rows in fetch_sigmorphon.expected_counts()[language].items():
            path = folder / "task1" / place / f"{language}-{part}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"é{n}\té{n}s\tN;PL\n" for n in range(rows)), encoding="utf-8")
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    requests: list[str] = []  # noqa: RUF012 (shared on purpose: the server makes the instances)

    def log_message(self, *_: object) -> None:
        self.requests.append(self.path)


@pytest.fixture(autouse=True)
def known(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksums of these files; and nothing between this process and the server."""
    sums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in repository.rglob("*")
        if path.is_file()
    }
    monkeypatch.setattr(fetch_sigmorphon, "known_checksums", lambda: sums)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def url(repository: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(repository))
    Quiet.requests.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_only_what_is_asked_comes_and_only_once(repository, url, tmp_path, capsys):
    arguments = ["--out", str(tmp_path), "--url", url]
    arguments += ["--settings", "low", "--languages", "norman", "north-frisian"]
    assert ended(fetch_sigmorphon.main, arguments) == 0
    # 100 and 100 rows of train-low, 50 and 100 of dev.
    assert "4 files, 350 rows; 4 fetched" in capsys.readouterr().out
    names = ["norman-dev", "norman-train-low", "north-frisian-dev", "north-frisian-train-low"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    original = repository / "task1" / "surprise" / "north-frisian-dev"
    assert (tmp_path / "north-frisian-dev").read_bytes() == original.read_bytes()

    damaged = original.with_name("north-frisian-train-low").read_bytes().replace(b"1", b"2", 1)
    (tmp_path / "north-frisian-train-low").write_bytes(damaged)  # fetched again, the others not
    (tmp_path / "norman-dev").write_text("cut\tsho\n")
    Quiet.requests.clear()
    assert ended(fetch_sigmorphon.main, arguments) == 0
    assert "4 files, 350 rows; 2 fetched" in capsys.readouterr().out
    name = "north-frisian-train-low"  # the first folder has no such file
    assert list(dict.fromkeys(Quiet.requests)) == [
        "/task1/all/norman-dev",
        f"/task1/all/{name}",
        f"/task1/surprise/{name}",
    ]


@pytest.mark.parametrize("below", ["", "task1/all"])
def test_a_local_folder_instead(repository, tmp_path, below, capsys):
    arguments = ["--out", str(tmp_path), "--from", str(repository / below)]
    assert (
        ended(fetch_sigmorphon.main, [*arguments, "--languages", "norman", "--settings", "low"])
        == 0
    )
    assert "2 files, 150 rows; 2 fetched" in capsys.readouterr().out
    assert (
        ended(fetch_sigmorphon.main, [*arguments, "--languages", "norman", "--settings", "low"])
        == 0
    )
    assert "2 files, 150 rows; 0 fetched" in capsys.readouterr().out


def test_a_test_set_that_is_there_is_read(repository, tmp_path, capsys):
    (tmp_path / "norman-test").write_text("a\tb\n")
    arguments = ("--from", repository, "--languages", "norman", "--settings", "low", "--test")
    assert "norman-test:1" in refused(fetch_sigmorphon.main, ["--out", tmp_path, *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--languages", "normann"], "no language 'normann'; did you mean 'norman'?"),
        (
            ["--settings", "meduim"],
            "no setting 'meduim' among low, medium, high; did you mean 'medium'?",
        ),
        (["--languages", "norman"], "norman has no train-high"),
        (["--languages", "english", "--settings", "low"], "no file english-train-low"),
    ],
)
def test_wrong_choices(repository, tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    error = refused(fetch_sigmorphon.main, ["--out", out, "--from", repository, *arguments])
    assert message in error
    assert not out.exists() or not list(out.iterdir())


def test_a_file_that_is_cut_is_not_kept(repository, tmp_path, capsys):
    (tmp_path / "norman-train-low").write_text("a\tb\tN\n")
    arguments = ("--from", tmp_path, "--languages", "norman", "--settings", "low")
    error = refused(fetch_sigmorphon.main, ["--out", tmp_path / "out", *arguments])
    assert "norman-train-low: has another checksum than the known file" in error
    assert not (tmp_path / "out").exists()


def test_no_connection_and_no_such_file_are_one_line(url, tmp_path, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
    asked = ("--languages", "norman", "--settings", "low", "--out", tmp_path)
    error = refused(fetch_sigmorphon.main, [*asked, "--url", closed])
    assert "cannot download" in error
    assert "run again, or use a local copy (-h says how)" in error
    error = refused(fetch_sigmorphon.main, [*asked, "--url", f"{url}/nothing"])
    assert "no norman-train-low in task1/all or task1/surprise" in error
    assert "low: is no address: it begins with https:" in refused(
        fetch_sigmorphon.main, [*asked, "--url", "nonsense"]
    )
    assert not list(tmp_path.iterdir())


def test_the_counts_are_those_of_the_papers_settings():
    assert fetch_sigmorphon.choose_files(["norman"], ["medium"], test=True)["norman-test"] is None
    high = fetch_sigmorphon.choose_files(["all"], ["high"])
    medium = fetch_sigmorphon.choose_files(["all"], ["medium"])
    assert sum(name.endswith("-train-high") for name in high) == 86
    assert sum(name.endswith("-train-medium") for name in medium) == 102
    assert sum(name.endswith("-dev") for name in high) == 86


@pytest.mark.parametrize("value", ["1e400", "nan", "-1", "0", "x"])
def test_a_time_limit_is_a_positive_number_of_seconds(tmp_path, value):
    assert f"above 0 and at most 600, not {value!r}" in refused(
        fetch_sigmorphon.main, ["--out", tmp_path, "--timeout", value]
    )


def test_every_counted_file_has_a_known_checksum():
    lines = fetch_sigmorphon.CHECKSUMS.read_text().splitlines()
    names = [line.split("  ")[1] for line in lines]
    counted = fetch_sigmorphon.expected_counts().items()
    assert sorted(names) == sorted(f"{name}-{part}" for name, parts in counted for part in parts)
    assert all(re.fullmatch(r"[0-9a-f]{64}  [a-z-]+", line) for line in lines)


def test_the_counts_are_those_of_the_real_files(conll2018):
    for language, parts in fetch_sigmorphon.expected_counts().items():
        for part, rows in parts.items():
            assert (conll2018 / f"{language}-{part}").read_bytes().count(b"\n") == rows, language
    for line in fetch_sigmorphon.CHECKSUMS.read_text().splitlines():
        checksum, name = line.split("  ")
        assert hashlib.sha256((conll2018 / name).read_bytes()).hexdigest() == checksum, name
