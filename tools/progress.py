# SPDX-License-Identifier: Apache-2.0
"""Runs a command and shows its progress: at least every five seconds one line with the time and the newest output.

Usage: python3 tools/progress.py WHAT LOG COMMAND...      WHAT is printed before the command begins; LOG is the file for
all its output. On a terminal one line is written again and again; elsewhere each is a new line. If the command
fails, all its output is printed. The exit code is that of the command."""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

PROGRESS_INTERVAL_S = 4.0
# Steps of Ninja among the output of pip: these count what is done, so they are shown rather than what came last.
_NINJA_STEP_PATTERN = re.compile(r"\[(\d+)/(\d+)\] (?:\S+ )*?(?:object |executable |library |module )?(\S+)$")


def select_progress(output_line: str) -> str:
    """Shortens a line of output to a progress message."""
    step = _NINJA_STEP_PATTERN.search(output_line.strip())
    return f"step {step[1]} of {step[2]}: {Path(step[3]).name}" if step else output_line.strip()


def _copy_to_log_and_queue(command_output: IO[str], log_file: IO[str], line_queue: queue.Queue[str | None]) -> None:
    for line in command_output:
        log_file.write(line)
        log_file.flush()
        if line.strip():
            line_queue.put(line)
    line_queue.put(None)


def run_with_progress(title: str, log_file: Path, command: list[str]) -> int:
    """Runs the command; returns its exit code."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns - 1
    print(title, flush=True)

    def show_progress_line(progress_text: str) -> None:
        line = f"  {time.monotonic() - began:3.0f} s  {progress_text}"
        print(f"\r\033[K{line[:width]}" if terminal else line[:160], end="" if terminal else "\n", flush=True)

    lines: queue.Queue[str | None] = queue.Queue()
    with log_file.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        reader = threading.Thread(target=_copy_to_log_and_queue, args=(process.stdout, log, lines), daemon=True)
        reader.start()
        newest, printed, due = "", "", PROGRESS_INTERVAL_S
        while True:
            try:
                line = lines.get(timeout=max(0.05, began + due - time.monotonic()))
                if line is None:
                    break
                newest = select_progress(line)
            except queue.Empty:
                pass
            now = time.monotonic() - began
            if now >= due or (terminal and newest != printed):
                show_progress_line(newest)
                printed, due = newest, now + PROGRESS_INTERVAL_S
        code = process.wait()
    if terminal:
        print("\r\033[K", end="")
    if code != 0:
        print(log_file.read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
    print(
        f"  {time.monotonic() - began:3.0f} s  {'done' if code == 0 else f'FAILED with exit code {code}'}", flush=True
    )
    return code


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("Usage: tools/progress.py WHAT LOG COMMAND...")
    sys.exit(run_with_progress(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
