# SPDX-License-Identifier: Apache-2.0
"""One child process in its own process group, and how signals to us reach it.

The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is passed on once: the child ends its phase, completes its record and
cleans up. A second one starts a grace period, after which the whole group is killed. Even that does not end a process
that waits in the kernel for storage: such a child is left to itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from sonde.model.errors import MachineError

GRACE_S = 5.0
# What was killed is gone at once, unless it waits in the kernel for a server that does not answer.
STUCK_S = 10.0
_RELAYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
# How often the record is looked at: ten times a second is as often as a person can see.
_INTERVAL_S = 0.1


class SignalWatch:
    """Counts signals instead of dying from them, while it is entered. Outside the main thread it counts nothing."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalWatch:
        # Python lets only the main thread handle signals; a notebook or a service may call us from another.
        for number in _RELAYED if threading.current_thread() is threading.main_thread() else ():
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)


class Child:
    """A running command. Its output and messages go to a file, so that it outlives us without harm."""

    def __init__(
        self, command: Sequence[str], messages: Path, environment: Mapping[str, str], directory: Path | None = None
    ) -> None:
        with messages.open("ab") as output:
            try:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **environment},
                    cwd=directory,
                    process_group=0,
                )
            except OSError as reason:
                raise MachineError(f"{command[0]} does not start: {reason.strerror}.") from None
        self._messages = messages
        self._kill_at: float | None = None
        self.stuck = False  # it was killed and did not end: it waits in the kernel
        self._ended = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def messages(self, limit: int = 65536) -> str:
        """The end of what the child printed."""
        with self._messages.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - limit))
            return file.read().decode("utf-8", "replace")

    def watch(self, signals: SignalWatch, relayed: Callable[[int], int], look: Callable[[], None]) -> int:
        """Waits for the end, calls `look` ten times a second, passes signals on. Returns the exit status.

        A signal that came while the child was being started is passed on too: nothing else would ever tell it. One
        that is `stuck` counts as killed.
        """
        passed_on = 0
        while not select.select([self._ended], [], [], _INTERVAL_S)[0]:
            look()
            if len(signals.received) > passed_on:
                if passed_on == 0:
                    self._send(relayed(signals.received[0]))
                else:
                    self.allow(GRACE_S)
                passed_on += 1
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self.kill()
                if time.monotonic() >= self._kill_at + STUCK_S:
                    self.stuck = True
                    self._process.returncode = -signal.SIGKILL  # nobody waits for it any more
                    os.close(self._ended)
                    return self._process.returncode
        status = self._process.wait()
        os.close(self._ended)
        self._end_group()
        look()
        return status

    def allow(self, seconds: float) -> None:
        """It has so many seconds left; then watch() ends the whole group. The first such word counts."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + seconds

    def stop(self) -> None:
        """Asks the child to end in good order, as a signal from a person would."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the whole group at once."""
        self._send_group(signal.SIGKILL)

    def _end_group(self) -> None:
        """What the child started and left behind (ranks of a killed launcher) ends too, in good order if it can."""
        self._send_group(signal.SIGTERM)
        limit = time.monotonic() + GRACE_S
        while self._send_group(0) and time.monotonic() < limit:
            time.sleep(_INTERVAL_S)
        self._send_group(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _send_group(self, number: int) -> bool:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True
