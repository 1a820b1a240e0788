# SPDX-License-Identifier: Apache-2.0
"""Reads mounts and their options from /proc/self/mountinfo (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MOUNTINFO_FILE = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class MountEntry:
    """One mount; `number` is major:minor of the device."""

    location: str
    device: str
    kind: str
    number: str
    options: tuple[str, ...]


def parse_mountinfo(mountinfo_text: str) -> list[MountEntry]:
    """The mounts of a mountinfo file."""
    mounts = []
    for line in mountinfo_text.splitlines():
        before, _, after = line.partition(" - ")
        first, last = before.split(), after.split()
        if len(first) < 6 or len(last) < 2:
            continue
        options = (*first[5].split(","), *(last[2].split(",") if len(last) > 2 else ()))
        mount_point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), first[4])
        mounts.append(MountEntry(mount_point, last[1], last[0], first[2], tuple(dict.fromkeys(options))))
    return mounts


def find_mount_of_path(file_path: str, mountinfo_text: str | None = None) -> MountEntry | None:
    """The mount of a path: the longest mount point that is a prefix of it; with several the last one."""
    real = os.path.realpath(file_path)
    mounts = parse_mountinfo(
        MOUNTINFO_FILE.read_text(encoding="utf-8", errors="replace") if mountinfo_text is None else mountinfo_text
    )
    matches = [mount for mount in mounts if real == mount.location or real.startswith(mount.location.rstrip("/") + "/")]
    best = max((len(mount.location) for mount in matches), default=0)
    return next((mount for mount in reversed(matches) if len(mount.location) == best), None)
