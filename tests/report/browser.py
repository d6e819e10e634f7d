"""A page in a headless browser, for tests of pages."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.report.devtools import DevTools

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
        # The page before may have had a request to send; it is gone when this call returns.
        self._tools.call("Page.navigate", url="about:blank")
        self._tools.events.clear()
        begin = time.monotonic()
        self._site = page if isinstance(page, str) else "file:"
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
