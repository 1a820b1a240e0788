# SPDX-License-Identifier: Apache-2.0
"""What is mounted where, with which options: /proc/self/mountinfo (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Mount:
    """One mount: `number` is major:minor of the device."""

    where: str
    device: str
    kind: str
    number: str
    options: tuple[str, ...]


def read_mounts(text: str) -> list[Mount]:
    """Every line of a mountinfo file."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        first, last = before.split(), after.split()
        if len(first) < 6 or len(last) < 2:
            continue
        options = (*first[5].split(","), *(last[2].split(",") if len(last) > 2 else ()))
        where = first[4].encode().decode("unicode_escape", errors="replace")
        found.append(Mount(where, last[1], last[0], first[2], tuple(dict.fromkeys(options))))
    return found


def mount_of(path: str, text: str | None = None) -> Mount | None:
    """The mount that a path lies in: the longest that it begins with, of several the last."""
    real = os.path.realpath(path)
    mounts = read_mounts(MOUNTINFO.read_text(encoding="utf-8", errors="replace") if text is None else text)
    fitting = [one for one in mounts if real == one.where or real.startswith(one.where.rstrip("/") + "/")]
    best = max((len(one.where) for one in fitting), default=0)
    return next((one for one in reversed(fitting) if len(one.where) == best), None)
