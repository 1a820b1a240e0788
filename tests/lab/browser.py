# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven through its debugging pipe: no driver program and no library besides the browser itself.

The protocol is Chromium's own (JSON messages that end in a zero byte, on file descriptors 3 and 4 of the browser). The
few dozen lines here replace a dependency of a hundred megabytes, and see every request and every console message.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def find_browser() -> str | None:
    """The browser's program, or None."""
    return next((program for name in NAMES if (program := shutil.which(name))), None)


class Page:
    """One tab. `requests` and `messages` collect what the page asked for and what the console said."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._rest, self._number = send, receive, b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends one command and waits for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data) :]
        while True:
            answer = self._next(60.0)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self, timeout: float) -> dict[str, Any]:
        until = time.monotonic() + timeout
        while b"\0" not in self._rest:
            remaining = until - time.monotonic()
            if remaining <= 0 or not select.select([self._receive], [], [], remaining)[0]:
                raise TimeoutError("Chromium did not answer")
            piece = os.read(self._receive, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended")
            self._rest += piece
        row, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(row)
        self._record_browser_event(message)
        return message

    def _record_browser_event(self, message: dict[str, Any]) -> None:
        method, event = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Log.entryAdded":
            self.messages.append(f"{event['entry']['level']}: {event['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            self.messages.append(f"exception: {event['exceptionDetails'].get('text')}")
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(f"console.{event['type']}")

    def open(self, path: Path, width: int = 1280, height: int = 900, scale: float = 1.0, dark: bool = False) -> float:
        """Opens a file at a window width in CSS pixels; returns the seconds until it was loaded and laid out."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 700,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media="", features=scheme)
        self.requests.clear()
        self.messages.clear()
        self._loaded = False
        begun = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._next(60.0)
        self.evaluate("document.documentElement.getBoundingClientRect().height")
        return time.monotonic() - begun

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page (the debugger may run some, the page itself may not)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("text", "evaluation failed"))
        return answer["result"].get("value")

    def picture(self, path: Path, is_full_page: bool = True, height: int | None = None) -> Path:
        """Saves a PNG of the whole page, of its first `height` CSS pixels, or of the window."""
        clip: dict[str, Any] = {"captureBeyondViewport": False}
        if is_full_page or height:
            box = self.evaluate(
                "[document.documentElement.clientWidth, document.documentElement.scrollHeight].join(' ')"
            ).split()
            clip = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": int(box[0]), "height": height or int(box[1]), "scale": 1},
            }
        shot = self.call("Page.captureScreenshot", format="png", **clip)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        """Prints the page as the style sheet wants it."""
        printed = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(printed["data"]))
        return path


@contextmanager
def browser() -> Iterator[Page]:
    """A tab of a fresh browser that ends with the block."""
    program = find_browser()
    if program is None:
        raise RuntimeError("no Chromium is installed")
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="sonde-browser-", ignore_cleanup_errors=True) as profile:

        def descriptors() -> None:
            # In the child only: the browser reads commands from 3 and answers on 4.
            high_read, high_write = os.dup(to_read), os.dup(from_write)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=descriptors,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            yield Page(to_write, from_read)
        finally:
            with suppress(OSError):
                os.close(to_write)
            os.close(from_read)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
