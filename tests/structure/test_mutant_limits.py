# SPDX-License-Identifier: Apache-2.0
"""When a change is given up: a loaded machine is no reason, processor time and standing still are."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from mutation import limits  # noqa: E402
from mutation.change import KILLED, SURVIVED, TIMEOUT  # noqa: E402

PYTHON = [sys.executable, "-S", "-c"]


def first_hang(looks: Iterator[limits.ProcessActivity], longest_s: float = 10_000) -> float | None:
    """After how many seconds a process is given up that is looked at once a second; None: never in two hours."""
    now = [0.0]
    watch = limits.HangWatch(1, 60, longest_s, lambda _: next(looks), lambda: now[0])
    for second in range(7200):
        now[0] = float(second)
        if watch.is_hanging():
            return now[0]
    return None


def make_activities(cpu_a_second: float, at_work: Callable[[int], bool]) -> Iterator[limits.ProcessActivity]:
    return (limits.ProcessActivity(cpu_a_second * second, at_work(second)) for second in itertools.count())


def test_process_waiting_for_a_processor_is_not_a_hang() -> None:
    assert first_hang(make_activities(0.0, lambda second: True)) is None
    assert first_hang(make_activities(0.001, lambda second: second % 3 == 0)) is None


def test_process_with_cpu_time_between_waits_is_not_a_hang() -> None:
    assert first_hang(make_activities(0.01, lambda second: False)) is None


def test_sleeping_process_is_a_hang_after_a_minute() -> None:
    assert first_hang(make_activities(0.0, lambda second: False)) == 60
    assert first_hang(make_activities(0.0, lambda second: second < 600)) in range(640, 661)


def test_loop_with_a_short_sleep_is_a_hang() -> None:
    assert first_hang(make_activities(0.001, lambda second: second % 10 == 0)) == 60
    assert first_hang(make_activities(0.5, lambda second: True), longest_s=3600) == 3601


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("pass", SURVIVED),
        ("raise SystemExit(1)", KILLED),
        ("import os; os.abort()", KILLED),
        ("while True: pass", TIMEOUT),
    ],
    ids=["passes", "fails", "crashes", "loops"],
)
def test_exit_of_a_program_determines_the_outcome_of_a_mutant(code: str, outcome: str, tmp_path: Path) -> None:
    assert limits.run_tests_with_limits([*PYTHON, code], tmp_path, tmp_path / "output.txt", {}, cpu_s=0) == outcome


def has_ended(process: int) -> bool:
    """Also when nobody has asked how."""
    try:
        return " Z " in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_hung_program_is_ended_with_its_children(tmp_path: Path) -> None:
    wait = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {wait!r}], start_new_session=True)"
    output = tmp_path / "output.txt"
    assert limits.run_tests_with_limits([*PYTHON, code], tmp_path, output, {}, cpu_s=5, idle_s=0.5) == TIMEOUT
    started = int(output.read_text(encoding="utf-8"))
    limit = time.monotonic() + 60  # it has been killed, and dies when it gets a processor
    while not has_ended(started):
        assert time.monotonic() < limit
        time.sleep(0.01)


SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
THREAD = f"import threading; one = threading.Thread(target=exec, args=({SPIN!r},)); one.start(); one.join()"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {SPIN!r}], start_new_session=True)"


@pytest.mark.parametrize("code", [THREAD, CHILD], ids=["a thread", "a child in another session"])
def test_activity_includes_child_processes(code: str) -> None:
    with subprocess.Popen([*PYTHON, code], preexec_fn=lambda: limits.limit_processor(5)) as process:
        before = limits.read_activity(process.pid)
        while not (now := limits.read_activity(process.pid)).at_work or now.cpu_s < before.cpu_s + 0.2:
            assert process.poll() is None
        process.kill()


def test_a_process_that_waits_is_not_at_work() -> None:
    code = "import signal; print(flush=True); signal.pause()"
    with subprocess.Popen([*PYTHON, code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while limits.read_activity(process.pid).at_work:  # on its way from the line to the wait
            assert process.poll() is None
        process.kill()
