"""A headless browser for tests of pages."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# Chromium reads from descriptor 3 and writes to 4; both may be taken until they were copied.
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
_READY_SECONDS = 30
_CONDITION_SECONDS = 10
_DRAWN_MILLISECONDS = 60  # a few frames, after which a change is drawn
_KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "End": 35}


class Window(NamedTuple):
    """The size of a window, in CSS pixels."""

    width: int
    height: int


DESKTOP = Window(1280, 900)
PHONE = Window(390, 844)


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


class Browser:
    """A page in a headless Chromium; calling it evaluates JavaScript.

    Args:
        profile: an empty folder for its files.
    """

    def __init__(self, profile: Path) -> None:
        self._tools = DevTools(profile)
        self._site = "about:"  # begins the addresses that a page may load
        try:
            self._tools.attach()
            for domain in ("Page", "Runtime", "Log", "Network"):
                self._tools.call(f"{domain}.enable")
            self.size(*DESKTOP)
        except BaseException:
            self._tools.close()
            raise

    def close(self) -> None:
        """End the browser."""
        self._tools.close()

    def size(self, width: int, height: int, scale: float = 1) -> None:
        """Set the window's size in CSS pixels, and the device pixels for each."""
        self._tools.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip

    def open(self, page: Path | str) -> float:
        """Open a file, or the page of a site of ours, and wait until it is ready.

        Returns:
            The seconds that took.
        """
        self._tools.events.clear()
        begin = time.monotonic()
        self._site = page if isinstance(page, str) else "file:"
        self._tools.call("Page.navigate", url="about:blank")
        self._tools.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self._evaluate("document.documentElement?.dataset.ready") != "true":
            assert time.monotonic() < begin + _READY_SECONDS, self.complaints()
            time.sleep(0.01)
        return time.monotonic() - begin

    def _evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression now; None if it has none."""
        result = self._tools.call("Runtime.evaluate", expression=expression)
        return result["result"].get("value")

    def __call__(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, after its changes are drawn."""
        waiting = (
            f"new Promise(done => {{ const value = ({expression}); "
            f"setTimeout(() => done(value), {_DRAWN_MILLISECONDS}) }})"
        )
        result = self._tools.call(
            "Runtime.evaluate", expression=waiting, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait for a condition to hold."""
        end = time.monotonic() + _CONDITION_SECONDS
        while not self(expression):
            assert time.monotonic() < end, expression

    def press(self, key: str) -> None:
        """Press and release a key, such as `Enter` or `n`."""
        event = {"key": key, "windowsVirtualKeyCode": _KEY_CODES.get(key, ord(key[0].upper()))}
        typed = {"text": key} if len(key) == 1 else {}
        if key == "Enter":
            typed = {"text": "\r"}
        self._tools.call("Input.dispatchKeyEvent", type="keyDown", **event, **typed)
        self._tools.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def complaints(self) -> list[Any]:
        """Return the console's errors and warnings, and requests beyond the page's site."""
        complaints = []
        for event in self._tools.events:
            parameters = event.get("params", {})
            if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                complaints.append(parameters)
            elif event.get("method") == "Log.entryAdded":
                complaints.append(parameters["entry"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith((self._site, "data:", "about:")):
                    complaints.append(url)
        return complaints
