# SPDX-License-Identifier: Apache-2.0
"""Ends the tests of a change when their processor time is spent or when they hang.

Not by the clock on the wall: on a machine with other work the same tests take many times as long, and a limit that the
load meets would count as a change that the tests notice. A process that waits for a processor is at work here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutation.change import KILLED, SURVIVED, TIMEOUT

MAX_IDLE_S = 60.0
"""For so long nothing may be at work. No test waits that long for something that comes."""
MAX_RUNTIME_S = 3600.0
"""On the wall, for what neither works nor hangs: a loop around a short sleep in a tree of many processes."""
_MAX_IDLE_CPU_S = 0.5
_IDLE_SHARE = 0.2
_POLL_INTERVAL_S = 0.5
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def compute_allowed_processor_s(cost_s: float) -> float:
    """Processor time that a process may take, in seconds, when the tests as they are take `cost_s`."""
    return 20 + 5 * cost_s


def limit_processor(cpu_s: float) -> None:
    """Ends this process, and each that it starts, by a signal when it has used so many seconds of processor time."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(cpu_s) + 1
    if most != resource.RLIM_INFINITY:
        soft = min(soft, most)
    hard = soft + 1 if most == resource.RLIM_INFINITY else min(soft + 1, most)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_processor_s_of_children() -> float:
    """Processor time of all that this process has started and waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class ProcessActivity:
    """Activity of a process and its descendants."""

    cpu_s: float
    """What the living have used, with those that they waited for."""
    at_work: bool
    """One of their threads runs, waits for a processor or waits for storage."""


def _read_process_stat(process_folder: str) -> list[str]:
    """The words of a process's `stat` after its name; [] when it has gone."""
    try:
        text = Path(process_folder, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _list_processes_of_session(session_leader: int) -> dict[int, list[str]]:
    """The process `session_leader`, its descendants and the others of its session, each with its status."""
    status_by_pid = {int(name): _read_process_stat(f"/proc/{name}") for name in os.listdir("/proc") if name.isdigit()}
    every = {pid: arguments for pid, arguments in status_by_pid.items() if arguments}

    def belongs_to_session(pid: int) -> bool:
        if int(every[pid][3]) == session_leader:
            return True
        while pid in every and pid != session_leader:
            pid = int(every[pid][1])
        return pid == session_leader

    return {pid: arguments for pid, arguments in every.items() if belongs_to_session(pid)}


def read_activity(session_leader: int) -> ProcessActivity:
    """Of the process `session_leader`, its descendants and the others of its session."""
    processes = _list_processes_of_session(session_leader)
    ticks = sum(int(word) for arguments in processes.values() for word in arguments[11:15])
    states = set()
    for pid in processes:
        with contextlib.suppress(OSError):
            tasks = [_read_process_stat(f"/proc/{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task")]
            states |= {arguments[0] for arguments in tasks if arguments}
    return ProcessActivity(ticks / _TICKS_PER_S, bool(states & {"R", "D"}))


def kill_processes_of_session(session_leader: int) -> None:
    """Kills a process, its descendants and the others of its session."""
    for pid in _list_processes_of_session(session_leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass
class HangWatch:
    """Samples the activity of a process, and detects when it hangs."""

    root: int
    idle_s: float = MAX_IDLE_S
    longest_s: float = MAX_RUNTIME_S
    look: Callable[[int], ProcessActivity] = read_activity
    clock: Callable[[], float] = time.monotonic
    _seen: deque[tuple[float, ProcessActivity]] = field(default_factory=deque)
    _began: float = -1.0

    def is_hanging(self) -> bool:
        """Whether the process was idle for `idle_s` or has run for `longest_s`."""
        now = self.clock()
        if self._began < 0:
            self._began = now
        if now - self._began > self.longest_s:
            return True
        if self._seen and now - self._seen[-1][0] < min(_POLL_INTERVAL_S, self.idle_s / 10):
            return False
        self._seen.append((now, self.look(self.root)))
        while len(self._seen) > 1 and now - self._seen[1][0] >= self.idle_s:
            self._seen.popleft()
        if now - self._seen[0][0] < self.idle_s:
            return False
        used = abs(self._seen[-1][1].cpu_s - self._seen[0][1].cpu_s)
        busy = sum(sample.at_work for _, sample in self._seen) / len(self._seen)
        return used < _MAX_IDLE_CPU_S and busy < _IDLE_SHARE


def classify_exit_status(exit_status: int) -> str:
    """Outcome of a change by the exit status of its test program, which is negative for a signal."""
    if -exit_status in (signal.SIGXCPU, signal.SIGKILL):
        return TIMEOUT
    return SURVIVED if exit_status == 0 else KILLED


def run_tests_with_limits(
    test_command: Sequence[str],
    working_directory: Path,
    output_file: Path,
    added_variables: Mapping[str, str],
    cpu_s: float,
    idle_s: float = MAX_IDLE_S,
) -> str:
    """Runs a test program; its output goes to a file. Each of its processes may take `cpu_s` of processor time."""
    with output_file.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            test_command, cwd=working_directory, env={**os.environ, **added_variables}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=file,
            preexec_fn=lambda: limit_processor(cpu_s),
        )  # fmt: skip
    watch = HangWatch(process.pid, idle_s)
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return classify_exit_status(process.wait(min(_POLL_INTERVAL_S, idle_s / 10)))
            if watch.is_hanging():
                return TIMEOUT
    finally:
        if process.returncode is None:
            kill_processes_of_session(process.pid)
            process.wait()
