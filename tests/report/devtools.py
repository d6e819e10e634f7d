"""Start a headless Chromium, and call the methods of its DevTools protocol."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# Chromium reads from descriptor 3 and writes to 4. The ends of the pipes may have just these
# numbers, in the other order, so they are copied to higher numbers first.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --hide-scrollbars "
    "--remote-debugging-pipe"
)
_ANSWER_SECONDS = 60


class DevTools:
    """A Chromium that is controlled through a pair of pipes, by its DevTools protocol.

    Messages are JSON objects, each with a null byte after it. We send calls. Chromium sends the
    result of each, which has the call's `id`, and events, which have none.

    Args:
        profile: an empty folder for its files.

    Attributes:
        events: all that arrived and were not cleared.
    """

    def __init__(self, profile: Path) -> None:
        self._output, theirs_out = os.pipe()
        theirs_in, self._input = os.pipe()
        command = [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), str(CHROMIUM)]
        self._process = subprocess.Popen(
            [*command, *_FLAGS.split(), f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._received = b""
        self._calls = 0
        self._session: str | None = None  # of the page to which calls go; None: to the browser
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Let calls go to the first page."""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; keep events that arrive meanwhile."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._input, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        """Return the next message."""
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._output], [], [], _ANSWER_SECONDS)
            assert ready, "the browser does not answer"
            part = os.read(self._output, 1 << 20)
            assert part, "the browser has ended"
            self._received += part
        content, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(content)
        return message

    def close(self) -> None:
        """Ask the browser to end; kill it if it does not."""
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        finally:
            self._process.kill()  # without effect on one that has ended
            self._process.wait()
            os.close(self._input)
            os.close(self._output)
