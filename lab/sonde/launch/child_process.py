# SPDX-License-Identifier: Apache-2.0
"""Runs one child process in its own process group and forwards signals to it.

The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is forwarded once: the child ends its phase, completes its record and
cleans up. A second signal starts a grace period, after which the whole group is killed. SIGKILL does not end a process
that waits in the kernel for storage: this module stops waiting for such a child.
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

from sonde.model.confined_files import open_file, open_file_to_append
from sonde.model.errors import MachineError

TERMINATE_GRACE_S = 5.0
# A killed process ends at once, unless it waits in the kernel for a server that does not answer.
MAX_WAIT_AFTER_KILL_S = 10.0
_FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
# Time between two reads of the record; a person cannot see more than ten updates per second.
_POLL_INTERVAL_S = 0.1


class SignalWatch:
    """Records signals instead of dying from them, inside a `with` block. Outside the main thread it records nothing."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalWatch:
        # Python lets only the main thread handle signals; a notebook or a service may use another thread.
        for number in _FORWARDED_SIGNALS if threading.current_thread() is threading.main_thread() else ():
            self._before[number] = signal.signal(number, self._record_signal)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _record_signal(self, signal_number: int, frame: FrameType | None) -> None:
        self.received.append(signal_number)


class ChildProcess:
    """A running command. Its output goes to a file, so that it can outlive this process."""

    def __init__(
        self,
        command: Sequence[str],
        messages_file: Path,
        added_variables: Mapping[str, str],
        working_directory: Path | None = None,
    ) -> None:
        with open_file_to_append(messages_file) as output:
            try:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **added_variables},
                    cwd=working_directory,
                    process_group=0,
                )
            except OSError as reason:
                raise MachineError(f"{command[0]} does not start: {reason.strerror}.") from None
        self._messages = messages_file
        self._kill_at: float | None = None
        self.is_stuck = False  # it was killed and did not end, because it waits in the kernel
        self._ended = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def read_last_output(self, most_bytes: int = 65536) -> str:
        """The last `most_bytes` bytes that the child printed."""
        with open_file(self._messages) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - most_bytes))
            return file.read().decode("utf-8", "replace")

    def wait_for_end(
        self, signals: SignalWatch, choose_forwarded_signal: Callable[[int], int], on_poll: Callable[[], None]
    ) -> int:
        """Waits for the end of the child. Returns the exit status; a child that `is_stuck` counts as killed.

        Calls `on_poll` ten times a second. Forwards the signal that `choose_forwarded_signal` returns for a received
        one, also for a signal that arrived while the child was being started.
        """
        forwarded = 0
        while not select.select([self._ended], [], [], _POLL_INTERVAL_S)[0]:
            on_poll()
            if len(signals.received) > forwarded:
                if forwarded == 0:
                    self._send_signal(choose_forwarded_signal(signals.received[0]))
                else:
                    self.kill_group_after(TERMINATE_GRACE_S)
                forwarded += 1
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self.kill_group()
                if time.monotonic() >= self._kill_at + MAX_WAIT_AFTER_KILL_S:
                    self.is_stuck = True
                    self._process.returncode = -signal.SIGKILL  # so that Popen does not wait for it
                    os.close(self._ended)
                    return self._process.returncode
        status = self._process.wait()
        os.close(self._ended)
        self._end_remaining_processes()
        on_poll()
        return status

    def kill_group_after(self, seconds: float) -> None:
        """Lets wait() kill the whole group after `seconds`. Later calls have no effect."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + seconds

    def request_stop(self) -> None:
        """Asks the child to end in good order, like a signal from the user."""
        self._send_signal(signal.SIGTERM)

    def kill_group(self) -> None:
        """Kills the whole group."""
        self._send_signal_to_group(signal.SIGKILL)

    def _end_remaining_processes(self) -> None:
        """Ends the processes that the child started and left behind (ranks of a killed launcher): SIGTERM, then after a
        grace period SIGKILL."""
        self._send_signal_to_group(signal.SIGTERM)
        limit = time.monotonic() + TERMINATE_GRACE_S
        while self._send_signal_to_group(0) and time.monotonic() < limit:
            time.sleep(_POLL_INTERVAL_S)
        self._send_signal_to_group(signal.SIGKILL)

    def _send_signal(self, signal_number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal_number)

    def _send_signal_to_group(self, signal_number: int) -> bool:
        try:
            os.killpg(self._process.pid, signal_number)
        except (ProcessLookupError, PermissionError):
            return False
        return True
