# SPDX-License-Identifier: Apache-2.0
"""Pressure stall information: /proc/pressure/{cpu,memory,io}, Documentation/accounting/psi.rst of the kernel."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.telemetry.source import LocalSource, ReadingsByPart, open_kernel_files

_PRESSURE_FILES = ("proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io")


def parse_pressure(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    """Stall times of each resource, seconds: some, full. A resource without a "full" line has None there."""
    readings: ReadingsByPart = {}
    for path, text in texts_by_path.items():
        totals: dict[str, float] = {}
        for line in text.splitlines():
            kind, _, averages = line.partition(" ")
            total = averages.rpartition("total=")[2]
            if kind in ("some", "full") and total.isdigit():
                totals[kind] = int(total) / 1e6
        if totals:
            readings[path.rpartition("/")[2]] = (totals.get("some"), totals.get("full"))
    return readings


SOURCE = LocalSource(
    "pressure",
    "time in which tasks waited for processor, memory or I/O",
    "node",
    ("pressure_some_s", "pressure_full_s"),
    lambda root: open_kernel_files(
        root,
        _PRESSURE_FILES,
        parse_pressure,
        "the kernel needs CONFIG_PSI, and the boot option psi=1 on some distributions.",
    ),
)
