# SPDX-License-Identifier: Apache-2.0
"""Who is still writing a run: processes by host, id and start time.

Two archives on two machines may be one folder on a parallel file system, and such a file system need not support locks:
so a run that is being written says who writes it, and only a machine that can see those processes gone may finish it.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from sonde.store.durable import write_json

NAME = "owner.json"
# A run that another machine writes counts as dead when its record has not grown for this long.
_SILENCE_S = 6 * 3600.0


def claim(folder: Path, pids: list[int]) -> None:
    """Says that these processes of this machine are at work in `folder`."""
    processes = [{"pid": pid, "start": _start_of(pid)} for pid in pids]
    write_json(folder / NAME, {"host": socket.gethostname(), "processes": processes})


def release(folder: Path) -> None:
    """Nobody is at work any more."""
    (folder / NAME).unlink(missing_ok=True)


def alive(folder: Path) -> bool:
    """True while somebody may still be writing there."""
    try:
        found: Any = json.loads((folder / NAME).read_text(encoding="utf-8"))
        host, processes = found["host"], [(int(one["pid"]), one["start"]) for one in found["processes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return _recent(folder)
    if host != socket.gethostname():
        return _recent(folder)
    return any(start is not None and _start_of(pid) == start for pid, start in processes)


def alive_here(folder: Path) -> bool:
    """True when processes of this machine are still writing there, for certain."""
    try:
        found: Any = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return found["host"] == socket.gethostname() and any(
            one["start"] is not None and _start_of(int(one["pid"])) == one["start"]
            for one in found["processes"]
            if int(one["pid"]) != os.getpid()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _start_of(pid: int) -> str | None:
    """Start of a process in clock ticks since boot, which tells it from a later one with the same id."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name is in parentheses and may hold anything; the start is field 22, counted from 1.
    after_name = stat[stat.rindex(")") + 2 :].split()
    return None if after_name[0] == "Z" else after_name[19]


def _recent(folder: Path) -> bool:
    latest = 0.0
    for entry in [folder, *folder.iterdir()]:
        try:
            latest = max(latest, os.stat(entry).st_mtime)
        except FileNotFoundError:
            continue
    return time.time() - latest < _SILENCE_S
