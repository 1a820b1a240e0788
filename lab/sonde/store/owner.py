# SPDX-License-Identifier: Apache-2.0
"""Identifies the processes that still write a run: by host, process id and start time.

Two archives on two machines may be one folder on a parallel file system, and such a file system need not support locks:
so a run that is being written says who writes it, and only a machine that can see those processes gone may finish it.
"""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory

OWNER_FILE = "owner.json"
# A run that another machine writes counts as dead when its record has not grown for this long.
_DEAD_WRITER_AFTER_S = 6 * 3600.0
_CLAIM_PATTERN = re.compile(r"[^~]*~(?P<pid>\d+)-(?P<start>\d+|None)-(?P<host>.+)")


def format_claim() -> str:
    """Returns what a process that takes over a directory writes behind a tilde in the directory's name: one rename both
    takes and claims it. A claim in a file could be overwritten by a process that saw the dead owner before."""
    return f"{os.getpid()}-{_read_process_start_ticks(os.getpid())}-{socket.gethostname()}"


def record_writers_of_directory(run_directory: ConfinedDirectory, process_ids: list[int]) -> None:
    """Records that these processes of this node write in the directory."""
    processes = [{"pid": pid, "start": _read_process_start_ticks(pid)} for pid in process_ids]
    run_directory.write_json_file(OWNER_FILE, {"host": socket.gethostname(), "processes": processes})


def may_have_live_writer(run_directory: ConfinedDirectory) -> bool:
    """True while some process may still be writing in the directory. A claim in its name counts more than the file; a
    file of another user, who is not root, does not count."""
    owner: Any
    if claim := _CLAIM_PATTERN.fullmatch(run_directory.path.name):
        owner = {"host": claim["host"], "processes": [{"pid": claim["pid"], "start": claim["start"]}]}
    else:
        owner = run_directory.read_json_file(OWNER_FILE, trusted_only=True)
    try:
        host, processes = owner["host"], [(int(process["pid"]), process["start"]) for process in owner["processes"]]
    except (ValueError, KeyError, TypeError):
        return has_changed_recently(run_directory)
    if host != socket.gethostname():
        return has_changed_recently(run_directory)
    return any(start is not None and _read_process_start_ticks(pid) == start for pid, start in processes)


def has_live_writer_here(directory: ConfinedDirectory) -> bool:
    """True if processes of this machine are certainly still writing in the directory."""
    owner: Any = directory.read_json_file(OWNER_FILE, trusted_only=True)
    try:
        return owner["host"] == socket.gethostname() and any(
            process["start"] is not None and _read_process_start_ticks(int(process["pid"])) == process["start"]
            for process in owner["processes"]
            if int(process["pid"]) != os.getpid()
        )
    except (ValueError, KeyError, TypeError):
        return False


def has_changed_recently(directory: ConfinedDirectory) -> bool:
    """Whether the directory or a file in it changed within the last six hours."""
    latest = directory.stat_directory().st_mtime
    for name in directory.list_names():
        with suppress(FileNotFoundError):
            latest = max(latest, directory.stat_entry(name).st_mtime)
    return time.time() - latest < _DEAD_WRITER_AFTER_S


def _read_process_start_ticks(pid: int) -> str | None:
    """Start of a process in clock ticks since boot, which distinguishes it from a later process with the same id."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name is in parentheses and may hold anything; the start is field 22, counted from 1.
    after_name = stat[stat.rindex(")") + 2 :].split()
    return None if after_name[0] == "Z" else after_name[19]
