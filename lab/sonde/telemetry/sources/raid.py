# SPDX-License-Identifier: Apache-2.0
"""Software RAID: the folder `md` of each array below /sys/block (Documentation/admin-guide/md.rst), and /proc/mdstat.

A check, resync or recovery takes bandwidth from the run; a missing member makes reads of RAID 5 and 6 slower.
"""

from __future__ import annotations

import re
from pathlib import Path

from sonde.telemetry.source import ColumnValues, LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError

_SECTOR_BYTES = 512
_KIB = 1024
_ARRAY_LINES_PATTERN = re.compile(r"^(?P<name>md\S+) : (?P<state>\w+).*?$(?P<body>(?:\n[ \t]+.*$)*)", re.MULTILINE)
_MEMBER_COUNTS_PATTERN = re.compile(r"\[(\d+)/(\d+)\]")
_PROGRESS_LINE_PATTERN = re.compile(r"(?:check|resync|recovery|reshape)\s*=\s*([\d.]+)%.*?speed=(\d+)K/sec")


def parse_mdstat(mdstat_text: str) -> ReadingsByPart:
    """The values of every array of /proc/mdstat, in the order of the columns of `SOURCE`; it has no mismatches."""
    readings: ReadingsByPart = {}
    for match in _ARRAY_LINES_PATTERN.finditer(mdstat_text):
        members = _MEMBER_COUNTS_PATTERN.search(match["body"])
        progress = _PROGRESS_LINE_PATTERN.search(match["body"])
        disks, working = (float(members[1]), float(members[2])) if members else (None, None)
        readings[match["name"]] = (
            disks,
            None if disks is None or working is None else disks - working,
            float(progress[1]) / 100 if progress else 1.0,
            float(progress[2]) * _KIB if progress else 0.0,
            None,
        )
    return readings


def read_array_values(md_folder: Path) -> ColumnValues:
    """The values of an array from its folder `md`. Raises OSError if the array no longer exists."""
    disks, degraded = _read_kernel_number(md_folder / "raid_disks"), _read_kernel_number(md_folder / "degraded")
    mismatches = _read_kernel_number(md_folder / "mismatch_cnt")
    fraction, speed = 1.0, 0.0
    # "1024 / 2048" in sectors, or "none"; the speed is in KiB/s
    done, slash, total = _read_kernel_text(md_folder / "sync_completed").partition(" / ")
    if slash and total.isdigit() and int(total):
        fraction = int(done) / int(total)
        speed = (_read_kernel_number(md_folder / "sync_speed") or 0.0) * _KIB
    return disks, degraded, fraction, speed, None if mismatches is None else mismatches * _SECTOR_BYTES


def _read_kernel_text(kernel_file: Path) -> str:
    try:
        return kernel_file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""  # arrays without redundancy lack these files


def _read_kernel_number(kernel_file: Path) -> float | None:
    text = _read_kernel_text(kernel_file)
    return float(text) if text.isdigit() else None


def _open_array_reader(file_system_root: Path) -> SourceReader:
    folders = sorted((file_system_root / "sys/block").glob("*/md"))
    mdstat = file_system_root / "proc/mdstat"
    if not folders and not (mdstat.is_file() and parse_mdstat(_read_kernel_text(mdstat))):
        raise UnavailableSourceError(
            "No array below /sys/block and none in /proc/mdstat; sample it on a server with software RAID (mdadm)."
        )
    if not folders:
        return SourceReader(lambda: parse_mdstat(_read_kernel_text(mdstat)))
    return SourceReader(
        lambda: {folder.parent.name: read_array_values(folder) for folder in folders if folder.is_dir()}
    )


SOURCE = LocalSource(
    "raid",
    "missing members, check or recovery under way, and mismatches of every software RAID",
    "node",
    ("raid_disks", "raid_failed_disks", "raid_sync_fraction", "raid_sync_rate", "raid_mismatch_bytes"),
    _open_array_reader,
)
