"""`tools.papers.corpus_files`: the next folder is tried if, and only if, a file is not found."""

import http.client
import io
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from onmt_entmax.errors import UserError
from tools.papers.corpus_files import NotPublished, getter

URL = "https://corpora.test"
FOLDERS = ("all", "surprise")

ReplyWith = Callable[[dict[str, bytes | Exception]], None]


def http_error(code: int, reason: str) -> urllib.error.HTTPError:
    return urllib.error.HTTPError(URL, code, reason, http.client.HTTPMessage(), None)


NOT_FOUND = http_error(404, "Not Found")


@pytest.fixture
def reply_with(monkeypatch: pytest.MonkeyPatch) -> ReplyWith:
    """Return a function that sets the replies of the server: contents or errors by address."""

    def set_replies(replies: dict[str, bytes | Exception]) -> None:
        def urlopen(address: str, timeout: float) -> io.BytesIO:
            reply = replies[address]
            if isinstance(reply, Exception):
                raise reply
            return io.BytesIO(reply)

        monkeypatch.setattr(urllib.request, "urlopen", urlopen)

    return set_replies


def test_a_file_that_the_first_folder_lacks_is_in_the_next(reply_with: ReplyWith) -> None:
    reply_with({f"{URL}/all/x": NOT_FOUND, f"{URL}/surprise/x": b"rows"})
    assert getter(None, URL, FOLDERS)("x") == b"rows"


def test_a_file_that_no_folder_has_is_not_published(reply_with: ReplyWith) -> None:
    reply_with({f"{URL}/all/x": NOT_FOUND, f"{URL}/surprise/x": NOT_FOUND})
    with pytest.raises(NotPublished, match=f"{URL}/surprise/x: cannot be downloaded .*404"):
        getter(None, URL, FOLDERS)("x")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (http_error(500, "Internal Server Error"), "500"),
        (TimeoutError("timed out"), "timed out"),
    ],
    ids=["500", "timeout"],
)
def test_a_failure_in_the_first_folder_is_the_one_that_is_named(
    reply_with: ReplyWith, error: Exception, reason: str
) -> None:
    """The file may be there, so the next folder is not asked."""
    reply_with({f"{URL}/all/x": error, f"{URL}/surprise/x": NOT_FOUND})
    with pytest.raises(UserError, match=f"{URL}/all/x: cannot be downloaded .*{reason}"):
        getter(None, URL, FOLDERS)("x")
