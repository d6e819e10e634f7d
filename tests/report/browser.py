"""A headless browser for tests of pages."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# Chromium reads from descriptor 3 and writes to 4; both may be taken until they were copied.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A headless Chromium, controlled through a pair of pipes (the Chrome DevTools protocol).

    Args:
        profile: an empty folder for its files.
    """

    def __init__(self, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        flags = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            "--disable-background-networking --disable-component-update --hide-scrollbars "
            f"--remote-debugging-pipe --user-data-dir={profile} about:blank"
        )
        command = [sys.executable, "-c", START, str(theirs_in), str(theirs_out)]
        self.process = subprocess.Popen(
            [*command, str(CHROMIUM), *flags.split()],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = ours_out, ours_in
        self.received = b""
        self.number = 0
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        self.site = "about:"
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 900)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; keep events that arrive meanwhile."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.input, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.output], [], [], 60)
            assert ready, "the browser does not answer"
            part = os.read(self.output, 1 << 20)
            assert part, "the browser has ended"
            self.received += part
        content, _, self.received = self.received.partition(b"\0")
        message: dict[str, Any] = json.loads(content)
        return message

    def size(self, width: int, height: int, scale: float = 1) -> None:
        """Set the window's size in CSS pixels, and the device pixels for each."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip

    def open(self, page: Path | str) -> float:
        """Open a file, or the page of a site of ours, and wait until it is ready.

        Returns:
            The seconds that took.
        """
        self.events.clear()
        begin = time.monotonic()
        self.site = page if isinstance(page, str) else "file:"
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        ready = "document.documentElement?.dataset.ready"
        while self.call("Runtime.evaluate", expression=ready)["result"].get("value") != "true":
            assert time.monotonic() < begin + 30, self.complaints()
            time.sleep(0.01)
        return time.monotonic() - begin

    def __call__(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, after its changes are drawn."""
        waiting = (
            f"new Promise(done => {{ const value = ({expression}); "
            "setTimeout(() => done(value), 60) })"
        )
        result = self.call(
            "Runtime.evaluate", expression=waiting, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait for a condition to hold."""
        end = time.monotonic() + 10
        while not self(expression):
            assert time.monotonic() < end, expression

    def press(self, key: str) -> None:
        """Press and release a key, such as `Enter` or `n`."""
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "End": 35}
        code = codes.get(key, ord(key[0].upper()))
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )  # fmt: skip

    def complaints(self) -> list[Any]:
        """Return the console's errors and warnings, and requests beyond the page's site."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                found.append(parameters)
            elif event.get("method") == "Log.entryAdded":
                found.append(parameters["entry"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith((self.site, "data:", "about:")):
                    found.append(url)
        return found

    def close(self) -> None:
        """End the browser."""
        self.session = None
        self.call("Browser.close")
        self.process.wait(10)
        os.close(self.input)
        os.close(self.output)
